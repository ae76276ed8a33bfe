// cuDNN: recurrent networks by the interface before version 8, which takes the width of the input from a tensor and the
// type of the weights from a filter. cuDNN 8 still has it.
//
// Signatures: cudnn_adv_infer.h of 8.9.
#include <cstddef>
#include <cstdint>

#include "hollow/surfaces/cudnn.h"
#include "hollow/surfaces/cudnn_rnn.h"
#include "hollow/surfaces/data_type.h"
#include "hollow/surfaces/surface.h"

namespace ashlar::hollow {
namespace {

// The network with an input as wide as this step's; null where one of them is none.
const CudnnRnn* WithInput(void* handle, void* rnn, void* step) {
  CudnnRnn* mine = cudnn_rnns.Find(rnn);
  const CudnnTensor* x = cudnn_tensors.Find(step);
  if (FindCudnn(handle) == nullptr || mine == nullptr || x == nullptr || x->dims < 2) return nullptr;
  mine->input = x->dim[1];
  return mine;
}

int DescribePart(void* filter, void** address, const CudnnTensor& weights, int rows, int columns, const void* space,
                 std::uint64_t offset) {
  CudnnTensor* mine = cudnn_filters.Find(filter);
  if (mine == nullptr || address == nullptr) return CudnnBadParam();
  *address = nullptr;
  if (rows == 0 || columns == 0) return kCudnnSuccess;  // there is none
  const int dim[] = {1, rows, columns};
  if (!ShapeCudnn(mine, weights.data_type, 0, 3, dim)) return CudnnBadParam();
  *address = const_cast<char*>(static_cast<const char*>(space)) + offset * CudnnTypeBytes(weights.data_type);
  return kCudnnSuccess;
}

template <class Value>
int SetRnn(void* rnn, Value CudnnRnn::*part, Value value) {
  CudnnRnn* mine = cudnn_rnns.Find(rnn);
  if (mine == nullptr) return CudnnBadParam();
  mine->*part = value;
  return kCudnnSuccess;
}

}  // namespace
}  // namespace ashlar::hollow

using namespace ashlar::hollow;  // NOLINT: the functions below are the library's

ASHLAR_SURFACE int cudnnSetRNNDescriptor_v6(void* handle, void* rnn, int hidden, int layers, void* dropout,
                                            int input_mode, int direction, int cell, int, int) {
  CudnnRnn* mine = cudnn_rnns.Find(rnn);
  if (FindCudnn(handle) == nullptr || mine == nullptr || hidden < 1 || layers < 1) return CudnnBadParam();
  if (cell < 0 || cell > kGru || (dropout != nullptr && cudnn_dropouts.Find(dropout) == nullptr))
    return CudnnBadParam();
  mine->cell = cell;
  mine->bidirectional = direction == 1;
  mine->skip_input = input_mode == 1;
  mine->hidden = hidden;
  mine->layers = layers;
  return kCudnnSuccess;
}
ASHLAR_SURFACE int cudnnSetRNNBiasMode(void* rnn, int bias) { return SetRnn(rnn, &CudnnRnn::bias, bias); }
ASHLAR_SURFACE int cudnnSetRNNProjectionLayers(void* handle, void* rnn, int projection, int) {
  return FindCudnn(handle) == nullptr ? CudnnBadParam() : SetRnn(rnn, &CudnnRnn::projection, projection);
}
// How the products are computed, and whether the data are padded, do not change what is kept.
ASHLAR_SURFACE int cudnnSetRNNMatrixMathType(void* rnn, int) {
  return cudnn_rnns.Find(rnn) != nullptr ? kCudnnSuccess : CudnnBadParam();
}
ASHLAR_SURFACE int cudnnSetRNNPaddingMode(void* rnn, unsigned) {
  return cudnn_rnns.Find(rnn) != nullptr ? kCudnnSuccess : CudnnBadParam();
}
ASHLAR_SURFACE int cudnnRNNSetClip(void* handle, void* rnn, int, int, double, double) {
  return FindCudnn(handle) != nullptr && cudnn_rnns.Find(rnn) != nullptr ? kCudnnSuccess : CudnnBadParam();
}

ASHLAR_SURFACE int cudnnGetRNNParamsSize(void* handle, void* rnn, void* step, std::size_t* bytes, int type) {
  const CudnnRnn* mine = WithInput(handle, rnn, step);
  if (mine == nullptr || bytes == nullptr || CudnnTypeBytes(type) == 0) return CudnnBadParam();
  *bytes = WeightElements(*mine) * CudnnTypeBytes(type);
  return kCudnnSuccess;
}
// Each step has a tensor of its own, whose first dimension is how many samples it has.
ASHLAR_SURFACE int cudnnGetRNNTrainingReserveSize(void* handle, void* rnn, int steps, void* const* x,
                                                  std::size_t* bytes) {
  if (steps < 1 || x == nullptr || bytes == nullptr) return CudnnBadParam();
  std::uint64_t needed = 0;
  for (int i = 0; i < steps; ++i) {
    const CudnnRnn* mine = WithInput(handle, rnn, x[i]);
    if (mine == nullptr) return CudnnBadParam();
    const CudnnTensor* step = cudnn_tensors.Find(x[i]);
    needed += ReserveElements(*mine, 1, static_cast<std::uint64_t>(step->dim[0])) * CudnnTypeBytes(step->data_type);
  }
  *bytes = needed;
  return kCudnnSuccess;
}
ASHLAR_SURFACE int cudnnGetRNNLinLayerMatrixParams(void* handle, void* rnn, int pseudo_layer, void* step, void* weights,
                                                   const void* space, int which, void* matrix, void** address) {
  const CudnnRnn* mine = WithInput(handle, rnn, step);
  const CudnnTensor* all = cudnn_filters.Find(weights);
  if (mine == nullptr || all == nullptr || pseudo_layer < 0 || pseudo_layer >= PseudoLayers(*mine)) {
    return CudnnBadParam();
  }
  if (which < 0 || which >= Matrices(*mine)) return CudnnBadParam();
  const RnnMatrix shape = MatrixShape(*mine, pseudo_layer, which);
  return DescribePart(matrix, address, *all, shape.rows, shape.columns, space,
                      MatrixOffset(*mine, pseudo_layer, which));
}
ASHLAR_SURFACE int cudnnGetRNNLinLayerBiasParams(void* handle, void* rnn, int pseudo_layer, void* step, void* weights,
                                                 const void* space, int which, void* bias, void** address) {
  const CudnnRnn* mine = WithInput(handle, rnn, step);
  const CudnnTensor* all = cudnn_filters.Find(weights);
  if (mine == nullptr || all == nullptr || pseudo_layer < 0 || pseudo_layer >= PseudoLayers(*mine)) {
    return CudnnBadParam();
  }
  if (which < 0 || which >= Matrices(*mine)) return CudnnBadParam();
  const int rows = HasBias(*mine, which) ? mine->hidden : 0;
  return DescribePart(bias, address, *all, rows, 1, space, BiasOffset(*mine, pseudo_layer, which));
}
