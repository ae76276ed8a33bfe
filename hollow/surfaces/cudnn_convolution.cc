// cuDNN: convolutions by the older interface: descriptors, the shape of an output, and a search that finds one
// algorithm.
//
// Signatures: cudnn_cnn.h of 9.24, cudnn_cnn_infer.h and cudnn_cnn_train.h of 8.9.
#include "hollow/surfaces/cudnn_convolution.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hollow/surfaces/cudnn.h"
#include "hollow/surfaces/launches.h"
#include "hollow/surfaces/objects.h"
#include "hollow/surfaces/surface.h"
#include "hollow/surfaces/workspace.h"

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
