// cuDNN: convolutions by the older interface: descriptors, the shape of an output, and a search that finds one
// algorithm.
//
// Signatures: cudnn_cnn.h of 9.24, cudnn_cnn_infer.h and cudnn_cnn_train.h of 8.9.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hollow/api/cudnn/cudnn.h"
#include "hollow/api/objects.h"
#include "hollow/api/sizes.h"
#include "hollow/api/surface.h"
#include "hollow/process/process.h"

namespace ashlar::hollow {
namespace {

struct CudnnConvolution {
  int dims = 0;
  int pad[kCudnnMostDims] = {};
  int stride[kCudnnMostDims] = {};
  int dilation[kCudnnMostDims] = {};
  int mode = 0;
  int compute_type = 0;
  int math_type = 0;
  int groups = 1;
  int reorder = 0;
};
constinit Objects<CudnnConvolution> cudnn_convolutions(0xDD);

int SetConvolution(void* convolution, int dims, const int* pad, const int* stride, const int* dilation, int mode,
                   int compute_type) {
  CudnnConvolution* mine = cudnn_convolutions.Find(convolution);
  if (mine == nullptr || dims < 1 || dims > kCudnnMostDims - 2) return CudnnBadParam();
  if (pad == nullptr || stride == nullptr || dilation == nullptr) return CudnnBadParam();
  mine->dims = dims;
  std::copy(pad, pad + dims, mine->pad);
  std::copy(stride, stride + dims, mine->stride);
  std::copy(dilation, dilation + dims, mine->dilation);
  mine->mode = mode;
  mine->compute_type = compute_type;
  return kCudnnSuccess;
}

// output = 1 + (input + 2 pad - ((filter - 1) dilation + 1)) / stride, as cudnn_cnn.h tells of it.
int OutputShape(void* convolution, void* input, void* filter, int dims, int* output) {
  const CudnnConvolution* mine = cudnn_convolutions.Find(convolution);
  const CudnnTensor* x = cudnn_tensors.Find(input);
  const CudnnTensor* w = cudnn_filters.Find(filter);
  if (mine == nullptr || x == nullptr || w == nullptr || output == nullptr) return CudnnBadParam();
  if (x->dims != w->dims || x->dims != mine->dims + 2 || dims < x->dims) return CudnnBadParam();
  output[0] = x->dim[0];
  output[1] = w->dim[0];
  for (int i = 0; i < mine->dims; ++i) {
    const int window = (w->dim[i + 2] - 1) * mine->dilation[i] + 1;
    const int room = x->dim[i + 2] + 2 * mine->pad[i] - window;
    if (room < 0 || mine->stride[i] < 1) return CudnnBadParam();
    output[i + 2] = 1 + room / mine->stride[i];
  }
  return kCudnnSuccess;
}

// Algorithm 1 of each direction is one that every convolution has: IMPLICIT_PRECOMP_GEMM, and ALGO_1 of both gradients.
constexpr int kAlgorithm = 1;

int Found(void* handle, void* convolution, int wanted, int* count, ConvolutionPerformance* results) {
  const CudnnConvolution* mine = cudnn_convolutions.Find(convolution);
  if (FindCudnn(handle) == nullptr || mine == nullptr || wanted < 1 || count == nullptr || results == nullptr) {
    return CudnnBadParam();
  }
  results[0] = {};
  results[0].algorithm = kAlgorithm;
  results[0].time_ms = -1;  // not measured
  results[0].workspace_bytes = kWorkspaceBytes;
  results[0].determinism = 1;  // CUDNN_DETERMINISTIC
  results[0].math_type = mine->math_type;
  *count = 1;
  return kCudnnSuccess;
}

// A search that runs each algorithm once.
int Searched(void* handle, void* convolution, int wanted, int* count, ConvolutionPerformance* results) {
  const int status = Found(handle, convolution, wanted, count, results);
  return status != 0 ? status : LaunchCudnn(handle);
}

int MaxCount(void* handle, int* count) {
  if (FindCudnn(handle) == nullptr || count == nullptr) return CudnnBadParam();
  *count = 1;
  return kCudnnSuccess;
}

template <class Value>
int SetPart(void* convolution, Value CudnnConvolution::*part, Value value) {
  CudnnConvolution* mine = cudnn_convolutions.Find(convolution);
  if (mine == nullptr) return CudnnBadParam();
  mine->*part = value;
  return kCudnnSuccess;
}
template <class Value>
int GetPart(void* convolution, Value CudnnConvolution::*part, Value* value) {
  const CudnnConvolution* mine = cudnn_convolutions.Find(convolution);
  if (mine == nullptr || value == nullptr) return CudnnBadParam();
  *value = mine->*part;
  return kCudnnSuccess;
}

}  // namespace
}  // namespace ashlar::hollow

using namespace ashlar::hollow;  // NOLINT: the functions below are the library's

ASHLAR_CUDNN_OBJECT(ConvolutionDescriptor, cudnn_convolutions)

ASHLAR_SURFACE int cudnnSetConvolutionNdDescriptor(void* convolution, int dims, const int* pad, const int* stride,
                                                   const int* dilation, int mode, int compute_type) {
  return SetConvolution(convolution, dims, pad, stride, dilation, mode, compute_type);
}
ASHLAR_SURFACE int cudnnSetConvolution2dDescriptor(void* convolution, int pad_h, int pad_w, int stride_h, int stride_w,
                                                   int dilation_h, int dilation_w, int mode, int compute_type) {
  const int pad[] = {pad_h, pad_w};
  const int stride[] = {stride_h, stride_w};
  const int dilation[] = {dilation_h, dilation_w};
  return SetConvolution(convolution, 2, pad, stride, dilation, mode, compute_type);
}
ASHLAR_SURFACE int cudnnGetConvolutionNdDescriptor(void* convolution, int wanted, int* dims, int* pad, int* stride,
                                                   int* dilation, int* mode, int* compute_type) {
  const CudnnConvolution* mine = cudnn_convolutions.Find(convolution);
  if (mine == nullptr || wanted < 0) return CudnnBadParam();
  const int count = std::min(wanted, mine->dims);
  if (dims != nullptr) *dims = mine->dims;
  if (pad != nullptr) std::copy(mine->pad, mine->pad + count, pad);
  if (stride != nullptr) std::copy(mine->stride, mine->stride + count, stride);
  if (dilation != nullptr) std::copy(mine->dilation, mine->dilation + count, dilation);
  if (mode != nullptr) *mode = mine->mode;
  if (compute_type != nullptr) *compute_type = mine->compute_type;
  return kCudnnSuccess;
}
ASHLAR_SURFACE int cudnnSetConvolutionMathType(void* convolution, int type) {
  return SetPart(convolution, &CudnnConvolution::math_type, type);
}
ASHLAR_SURFACE int cudnnGetConvolutionMathType(void* convolution, int* type) {
  return GetPart(convolution, &CudnnConvolution::math_type, type);
}
ASHLAR_SURFACE int cudnnSetConvolutionGroupCount(void* convolution, int groups) {
  return SetPart(convolution, &CudnnConvolution::groups, groups);
}
ASHLAR_SURFACE int cudnnGetConvolutionGroupCount(void* convolution, int* groups) {
  return GetPart(convolution, &CudnnConvolution::groups, groups);
}
ASHLAR_SURFACE int cudnnSetConvolutionReorderType(void* convolution, int reorder) {
  return SetPart(convolution, &CudnnConvolution::reorder, reorder);
}
ASHLAR_SURFACE int cudnnGetConvolutionReorderType(void* convolution, int* reorder) {
  return GetPart(convolution, &CudnnConvolution::reorder, reorder);
}
ASHLAR_SURFACE int cudnnGetConvolutionNdForwardOutputDim(void* convolution, void* input, void* filter, int dims,
                                                         int* output) {
  return OutputShape(convolution, input, filter, dims, output);
}
ASHLAR_SURFACE int cudnnGetConvolution2dForwardOutputDim(void* convolution, void* input, void* filter, int* n, int* c,
                                                         int* h, int* w) {
  int output[kCudnnMostDims] = {};
  const int status = OutputShape(convolution, input, filter, 4, output);
  if (status != 0) return status;
  int* const to[] = {n, c, h, w};
  for (int i = 0; i < 4; ++i) {
    if (to[i] != nullptr) *to[i] = output[i];
  }
  return kCudnnSuccess;
}

// The three directions; their performance structures have the same layout.
#define ASHLAR_CONVOLUTION_SEARCH(direction)                                                                           \
  ASHLAR_SURFACE int cudnnGetConvolution##direction##AlgorithmMaxCount(void* handle, int* count) {                     \
    return MaxCount(handle, count);                                                                                    \
  }                                                                                                                    \
  ASHLAR_SURFACE int cudnnGetConvolution##direction##Algorithm_v7(                                                     \
      void* handle, void*, void*, void* convolution, void*, int wanted, int* count, ConvolutionPerformance* results) { \
    return Found(handle, convolution, wanted, count, results);                                                         \
  }                                                                                                                    \
  ASHLAR_SURFACE int cudnnFindConvolution##direction##Algorithm(                                                       \
      void* handle, void*, void*, void* convolution, void*, int wanted, int* count, ConvolutionPerformance* results) { \
    return Searched(handle, convolution, wanted, count, results);                                                      \
  }                                                                                                                    \
  ASHLAR_SURFACE int cudnnFindConvolution##direction##AlgorithmEx(                                                     \
      void* handle, void*, const void*, void*, const void*, void* convolution, void*, void*, int wanted, int* count,   \
      ConvolutionPerformance* results, void*, std::size_t) {                                                           \
    return Searched(handle, convolution, wanted, count, results);                                                      \
  }
ASHLAR_CONVOLUTION_SEARCH(Forward)
ASHLAR_CONVOLUTION_SEARCH(BackwardData)
ASHLAR_CONVOLUTION_SEARCH(BackwardFilter)

// cuDNN: the descriptors of layers. They are checked and kept alive; what a layer computes is not, so what they were
// set to is not asked again, save of dropout.
//
// Signatures: cudnn_ops.h, cudnn_cnn.h and cudnn_adv.h of 9.24, and those of 8.9.

namespace ashlar::hollow {

constinit Objects<CudnnDropout> cudnn_dropouts(0xD3);

namespace {

struct CudnnLayer {
  bool set = false;
};
constinit Objects<CudnnLayer> cudnn_activations(0xD4);
constinit Objects<CudnnLayer> cudnn_poolings(0xD5);
constinit Objects<CudnnLayer> cudnn_lrns(0xD6);
constinit Objects<CudnnLayer> cudnn_op_tensors(0xD7);
constinit Objects<CudnnLayer> cudnn_reductions(0xD8);
constinit Objects<CudnnLayer> cudnn_ctc_losses(0xD9);
constinit Objects<CudnnLayer> cudnn_transformers(0xDA);
constinit Objects<CudnnLayer> cudnn_transforms(0xDC);

int SetLayer(Objects<CudnnLayer>& layers, void* layer) {
  CudnnLayer* mine = layers.Find(layer);
  if (mine == nullptr) return CudnnBadParam();
  mine->set = true;
  return kCudnnSuccess;
}

// States of a random generator for as many threads as a device holds: sizeof(curandStateXORWOW_t) of curand_kernel.h
// for each. How many threads the library starts is not published: this is an assumption.
constexpr std::uint64_t kGeneratorBytes = 48;
std::uint64_t DropoutStatesBytes() {
  const Settings& machine = TheSettings();
  return kGeneratorBytes * static_cast<std::uint64_t>(machine.sm_count) *
         static_cast<std::uint64_t>(machine.threads_per_sm);
}

int SetDropout(void* dropout, void* handle, float probability, void* states, std::size_t bytes, std::uint64_t seed) {
  CudnnDropout* mine = cudnn_dropouts.Find(dropout);
  if (mine == nullptr || FindCudnn(handle) == nullptr || probability < 0 || probability > 1) return CudnnBadParam();
  if (states != nullptr && bytes < DropoutStatesBytes()) return CudnnBadParam();
  *mine = {probability, states, bytes, seed};
  return kCudnnSuccess;
}

}  // namespace
}  // namespace ashlar::hollow

using namespace ashlar::hollow;  // NOLINT: the functions below are the library's

ASHLAR_CUDNN_OBJECT(ActivationDescriptor, cudnn_activations)
ASHLAR_CUDNN_OBJECT(PoolingDescriptor, cudnn_poolings)
ASHLAR_CUDNN_OBJECT(LRNDescriptor, cudnn_lrns)
ASHLAR_CUDNN_OBJECT(OpTensorDescriptor, cudnn_op_tensors)
ASHLAR_CUDNN_OBJECT(ReduceTensorDescriptor, cudnn_reductions)
ASHLAR_CUDNN_OBJECT(CTCLossDescriptor, cudnn_ctc_losses)
ASHLAR_CUDNN_OBJECT(SpatialTransformerDescriptor, cudnn_transformers)
ASHLAR_CUDNN_OBJECT(TensorTransformDescriptor, cudnn_transforms)
ASHLAR_CUDNN_OBJECT(DropoutDescriptor, cudnn_dropouts)

ASHLAR_SURFACE int cudnnSetActivationDescriptor(void* layer, int, int, double) {
  return SetLayer(cudnn_activations, layer);
}
ASHLAR_SURFACE int cudnnSetActivationDescriptorSwishBeta(void* layer, double) {
  return SetLayer(cudnn_activations, layer);
}
ASHLAR_SURFACE int cudnnSetPooling2dDescriptor(void* layer, int, int, int, int, int, int, int, int) {
  return SetLayer(cudnn_poolings, layer);
}
ASHLAR_SURFACE int cudnnSetPoolingNdDescriptor(void* layer, int, int, int, const int*, const int*, const int*) {
  return SetLayer(cudnn_poolings, layer);
}
ASHLAR_SURFACE int cudnnSetLRNDescriptor(void* layer, unsigned, double, double, double) {
  return SetLayer(cudnn_lrns, layer);
}
ASHLAR_SURFACE int cudnnSetOpTensorDescriptor(void* layer, int, int, int) { return SetLayer(cudnn_op_tensors, layer); }
ASHLAR_SURFACE int cudnnSetReduceTensorDescriptor(void* layer, int, int, int, int, int) {
  return SetLayer(cudnn_reductions, layer);
}
ASHLAR_SURFACE int cudnnSetCTCLossDescriptor(void* layer, int) { return SetLayer(cudnn_ctc_losses, layer); }
ASHLAR_SURFACE int cudnnSetCTCLossDescriptorEx(void* layer, int, int, int) { return SetLayer(cudnn_ctc_losses, layer); }
ASHLAR_SURFACE int cudnnSetCTCLossDescriptor_v8(void* layer, int, int, int, int) {
  return SetLayer(cudnn_ctc_losses, layer);
}
ASHLAR_SURFACE int cudnnSetCTCLossDescriptor_v9(void* layer, int, int, int, int) {
  return SetLayer(cudnn_ctc_losses, layer);
}
ASHLAR_SURFACE int cudnnSetSpatialTransformerNdDescriptor(void* layer, int, int, int, const int*) {
  return SetLayer(cudnn_transformers, layer);
}
ASHLAR_SURFACE int cudnnSetTensorTransformDescriptor(void* layer, std::uint32_t, int, const std::int32_t*,
                                                     const std::int32_t*, const std::uint32_t*, int) {
  return SetLayer(cudnn_transforms, layer);
}

// Dropout. The states are filled on the device; the mask takes one byte or less an element.
ASHLAR_SURFACE int cudnnDropoutGetStatesSize(void* handle, std::size_t* bytes) {
  if (FindCudnn(handle) == nullptr || bytes == nullptr) return CudnnBadParam();
  *bytes = DropoutStatesBytes();
  return kCudnnSuccess;
}
// A mask of a bit for each element, in whole bytes: an assumption.
ASHLAR_SURFACE int cudnnDropoutGetReserveSpaceSize(void* tensor, std::size_t* bytes) {
  const CudnnTensor* mine = cudnn_tensors.Find(tensor);
  if (mine == nullptr || bytes == nullptr) return CudnnBadParam();
  std::uint64_t elements = 1;
  for (int i = 0; i < mine->dims; ++i) elements *= static_cast<std::uint64_t>(mine->dim[i]);
  *bytes = (elements + 7) / 8;
  return kCudnnSuccess;
}
ASHLAR_SURFACE int cudnnSetDropoutDescriptor(void* dropout, void* handle, float probability, void* states,
                                             std::size_t bytes, unsigned long long seed) {
  const int status = SetDropout(dropout, handle, probability, states, bytes, seed);
  return status != 0 || states == nullptr ? status : LaunchCudnn(handle);  // it fills the states
}
ASHLAR_SURFACE int cudnnRestoreDropoutDescriptor(void* dropout, void* handle, float probability, void* states,
                                                 std::size_t bytes, unsigned long long seed) {
  return SetDropout(dropout, handle, probability, states, bytes, seed);
}
ASHLAR_SURFACE int cudnnGetDropoutDescriptor(void* dropout, void* handle, float* probability, void** states,
                                             unsigned long long* seed) {
  const CudnnDropout* mine = cudnn_dropouts.Find(dropout);
  if (mine == nullptr || FindCudnn(handle) == nullptr) return CudnnBadParam();
  if (probability != nullptr) *probability = mine->probability;
  if (states != nullptr) *states = mine->states;
  if (seed != nullptr) *seed = mine->seed;
  return kCudnnSuccess;
}

// The scales and means of batch normalisation: one for each channel, or for each place of one image (mode 0 of
// cudnnBatchNormMode_t), in float where the data are narrower.
ASHLAR_SURFACE int cudnnDeriveBNTensorDescriptor(void* derived, void* from, int mode) {
  CudnnTensor* mine = cudnn_tensors.Find(derived);
  const CudnnTensor* data = cudnn_tensors.Find(from);
  if (mine == nullptr || data == nullptr || data->dims < 2) return CudnnBadParam();
  int dim[kCudnnMostDims];
  for (int i = 0; i < data->dims; ++i) dim[i] = i == 0 || (i > 1 && mode != 0) ? 1 : data->dim[i];
  constexpr int kFloat = 0;
  constexpr int kDouble = 1;
  return ShapeCudnn(mine, data->data_type == kDouble ? kDouble : kFloat, 0, data->dims, dim) ? 0 : CudnnBadParam();
}

// Causal convolutions are given a stream in place of a handle.
#define ASHLAR_ON_STREAM(name)                 \
  ASHLAR_SURFACE int name(void* stream, ...) { \
    CountLaunch(stream);                       \
    return kCudnnSuccess;                      \
  }
ASHLAR_ON_STREAM(cudnnCausalConv1dForward)
ASHLAR_ON_STREAM(cudnnCausalConv1dBackward)
ASHLAR_ON_STREAM(cudnnB2BCausalConv1dForward)
ASHLAR_ON_STREAM(cudnnB2BCausalConv1dBackward)
