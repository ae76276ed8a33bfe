// cuDNN: recurrent networks: the layout of their weights, and what a training step keeps.
//
// Signatures: cudnn_adv.h of 9.24, cudnn_adv_infer.h of 8.9. The weights lie as the library packs them: for each pseudo
// layer (a layer of one direction) its matrices, those of the input first; behind all matrices the biases in the same
// order. PyTorch checks that they follow each other without gaps (aten/src/ATen/native/cudnn/RNN.cpp).

#include "hollow/api/cudnn/rnn.h"

#include <cstddef>
#include <cstdint>

#include "hollow/api/cudnn/cudnn.h"
#include "hollow/api/objects.h"
#include "hollow/api/sizes.h"
#include "hollow/api/surface.h"

namespace ashlar::hollow {

constinit Objects<CudnnRnn> cudnn_rnns(0xDE);

int Gates(const CudnnRnn& rnn) { return rnn.cell == kLstm ? 4 : rnn.cell == kGru ? 3 : 1; }

int Matrices(const CudnnRnn& rnn) { return 2 * Gates(rnn) + (HasProjection(rnn) ? 1 : 0); }

bool HasProjection(const CudnnRnn& rnn) { return rnn.projection > 0 && rnn.projection < rnn.hidden; }

RnnMatrix MatrixShape(const CudnnRnn& rnn, int pseudo_layer, int which) {
  const int directions = rnn.bidirectional ? 2 : 1;
  const int output = HasProjection(rnn) ? rnn.projection : rnn.hidden;
  if (which == 2 * Gates(rnn)) return {rnn.projection, rnn.hidden};  // the projection
  if (which >= Gates(rnn)) return {rnn.hidden, output};              // of the state
  const bool first = pseudo_layer < directions;
  if (first && rnn.skip_input) return {0, 0};
  return {rnn.hidden, first ? rnn.input : output * directions};
}

bool HasBias(const CudnnRnn& rnn, int which) {
  if (which >= 2 * Gates(rnn)) return false;
  const bool of_input = which < Gates(rnn);
  return rnn.bias == 2 || (rnn.bias == 1 && of_input) || (rnn.bias == 3 && !of_input);
}

std::uint64_t MatrixOffset(const CudnnRnn& rnn, int pseudo_layer, int which) {
  std::uint64_t elements = 0;
  for (int layer = 0; layer <= pseudo_layer; ++layer) {
    for (int i = 0; i < (layer == pseudo_layer ? which : Matrices(rnn)); ++i) {
      const RnnMatrix shape = MatrixShape(rnn, layer, i);
      elements += static_cast<std::uint64_t>(shape.rows) * static_cast<std::uint64_t>(shape.columns);
    }
  }
  return elements;
}

std::uint64_t BiasOffset(const CudnnRnn& rnn, int pseudo_layer, int which) {
  std::uint64_t elements = MatrixOffset(rnn, PseudoLayers(rnn), 0);
  for (int layer = 0; layer <= pseudo_layer; ++layer) {
    for (int i = 0; i < (layer == pseudo_layer ? which : Matrices(rnn)); ++i) {
      if (HasBias(rnn, i)) elements += static_cast<std::uint64_t>(rnn.hidden);
    }
  }
  return elements;
}

int PseudoLayers(const CudnnRnn& rnn) { return rnn.layers * (rnn.bidirectional ? 2 : 1); }

std::uint64_t WeightElements(const CudnnRnn& rnn) { return BiasOffset(rnn, PseudoLayers(rnn), 0); }

std::uint64_t ReserveElements(const CudnnRnn& rnn, std::uint64_t steps, std::uint64_t batch) {
  const std::uint64_t kept = rnn.cell == kLstm ? 6 : rnn.cell == kGru ? 5 : 1;
  return kept * static_cast<std::uint64_t>(rnn.hidden) * static_cast<std::uint64_t>(PseudoLayers(rnn)) * steps * batch;
}

namespace {

struct CudnnRnnData {
  int data_type = 0;
  int steps = 0;
  int batch = 0;
  int width = 0;
};
constinit Objects<CudnnRnnData> cudnn_rnn_data(0xDF);

// Describes a part of the weights as a tensor of three dimensions, and where it starts. A part that is not asked is
// not.
bool Part(void* tensor, void** address, int type, int rows, int columns, const void* space, std::uint64_t offset) {
  if (tensor == nullptr && address == nullptr) return true;
  CudnnTensor* mine = cudnn_tensors.Find(tensor);
  if (mine == nullptr || address == nullptr) return false;
  const int dim[] = {1, rows, columns};
  *address = nullptr;
  if (rows == 0 || columns == 0) {
    *mine = CudnnTensor{type, 0, 0, {}, {}};  // there is none
    return true;
  }
  *address = const_cast<char*>(static_cast<const char*>(space)) + offset * CudnnTypeBytes(type);
  return ShapeCudnn(mine, type, 0, 3, dim);
}

}  // namespace
}  // namespace ashlar::hollow

using namespace ashlar::hollow;  // NOLINT: the functions below are the library's

ASHLAR_CUDNN_OBJECT(RNNDescriptor, cudnn_rnns)
ASHLAR_CUDNN_OBJECT(RNNDataDescriptor, cudnn_rnn_data)

ASHLAR_SURFACE int cudnnSetRNNDescriptor_v8(void* rnn, int, int cell, int bias, int direction, int input_mode, int type,
                                            int, int, std::int32_t input, std::int32_t hidden, std::int32_t projection,
                                            std::int32_t layers, void* dropout, std::uint32_t) {
  CudnnRnn* mine = cudnn_rnns.Find(rnn);
  if (mine == nullptr || cell < 0 || cell > kGru || bias < 0 || bias > 3) return CudnnBadParam();
  if (input < 1 || hidden < 1 || layers < 1 || projection < 0 || CudnnTypeBytes(type) == 0) return CudnnBadParam();
  if (dropout != nullptr && cudnn_dropouts.Find(dropout) == nullptr) return CudnnBadParam();
  *mine = {cell, bias, direction == 1, input_mode == 1, type, input, hidden, projection, layers};
  return kCudnnSuccess;
}
ASHLAR_SURFACE int cudnnRNNSetClip_v8(void* rnn, int, int, double, double) {
  return cudnn_rnns.Find(rnn) != nullptr ? kCudnnSuccess : CudnnBadParam();
}
ASHLAR_SURFACE int cudnnRNNSetClip_v9(void* rnn, int, double, double) {
  return cudnn_rnns.Find(rnn) != nullptr ? kCudnnSuccess : CudnnBadParam();
}
ASHLAR_SURFACE int cudnnSetRNNDataDescriptor(void* data, int type, int, int steps, int batch, int width, const int*,
                                             void*) {
  CudnnRnnData* mine = cudnn_rnn_data.Find(data);
  if (mine == nullptr || steps < 1 || batch < 1 || width < 1 || CudnnTypeBytes(type) == 0) return CudnnBadParam();
  *mine = {type, steps, batch, width};
  return kCudnnSuccess;
}
ASHLAR_SURFACE int cudnnGetRNNWeightSpaceSize(void* handle, void* rnn, std::size_t* bytes) {
  const CudnnRnn* mine = cudnn_rnns.Find(rnn);
  if (FindCudnn(handle) == nullptr || mine == nullptr || bytes == nullptr) return CudnnBadParam();
  *bytes = WeightElements(*mine) * CudnnTypeBytes(mine->data_type);
  return kCudnnSuccess;
}
ASHLAR_SURFACE int cudnnGetRNNTempSpaceSizes(void* handle, void* rnn, int mode, void* data, std::size_t* workspace,
                                             std::size_t* reserve) {
  const CudnnRnn* mine = cudnn_rnns.Find(rnn);
  const CudnnRnnData* x = cudnn_rnn_data.Find(data);
  if (FindCudnn(handle) == nullptr || mine == nullptr || x == nullptr) return CudnnBadParam();
  if (workspace != nullptr) *workspace = kWorkspaceBytes;
  if (reserve == nullptr) return kCudnnSuccess;
  const std::uint64_t elements =
      ReserveElements(*mine, static_cast<std::uint64_t>(x->steps), static_cast<std::uint64_t>(x->batch));
  *reserve = mode == 1 ? elements * CudnnTypeBytes(mine->data_type) : 0;  // 1: CUDNN_FWD_MODE_TRAINING
  return kCudnnSuccess;
}
ASHLAR_SURFACE int cudnnGetRNNWeightParams(void* handle, void* rnn, std::int32_t pseudo_layer, std::size_t bytes,
                                           const void* space, std::int32_t which, void* matrix, void** matrix_address,
                                           void* bias, void** bias_address) {
  const CudnnRnn* mine = cudnn_rnns.Find(rnn);
  if (FindCudnn(handle) == nullptr || mine == nullptr) return CudnnBadParam();
  if (pseudo_layer < 0 || pseudo_layer >= PseudoLayers(*mine) || which < 0 || which > 2 * Gates(*mine)) {
    return CudnnBadParam();
  }
  if (bytes < WeightElements(*mine) * CudnnTypeBytes(mine->data_type)) return CudnnBadParam();
  const bool there = which < Matrices(*mine);
  const RnnMatrix shape = there ? MatrixShape(*mine, pseudo_layer, which) : RnnMatrix{0, 0};
  const int bias_rows = there && HasBias(*mine, which) ? mine->hidden : 0;
  const bool described = Part(matrix, matrix_address, mine->data_type, shape.rows, shape.columns, space,
                              there ? MatrixOffset(*mine, pseudo_layer, which) : 0) &&
                         Part(bias, bias_address, mine->data_type, bias_rows, 1, space,
                              there ? BiasOffset(*mine, pseudo_layer, which) : 0);
  return described ? kCudnnSuccess : CudnnBadParam();
}

// cuDNN: recurrent networks by the interface before version 8, which takes the width of the input from a tensor and the
// type of the weights from a filter. cuDNN 8 still has it.
//
// Signatures: cudnn_adv_infer.h of 8.9.

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
