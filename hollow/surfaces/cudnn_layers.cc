// cuDNN: the descriptors of layers. They are checked and kept alive; what a layer computes is not, so what they were
// set to is not asked again, save of dropout.
//
// Signatures: cudnn_ops.h, cudnn_cnn.h and cudnn_adv.h of 9.24, and those of 8.9.
#include <cstddef>
#include <cstdint>

#include "hollow/launch/process.h"
#include "hollow/surfaces/cudnn.h"
#include "hollow/surfaces/launches.h"
#include "hollow/surfaces/objects.h"
#include "hollow/surfaces/surface.h"

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
