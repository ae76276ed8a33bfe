// Lays out the weights of a recurrent network in cuDNN's weight space, and sizes what a training step keeps for
// backward.
//
// Offsets and sizes are in elements. `which` is cuDNN's linLayerID: the gates' matrices for the input, then those for
// the state, then the projection's. Thread rule: any thread.
#ifndef ASHLAR_HOLLOW_API_CUDNN_RNN_H_
#define ASHLAR_HOLLOW_API_CUDNN_RNN_H_

#include <cstdint>

#include "hollow/api/objects.h"

namespace ashlar::hollow {

// cudnnRNNMode_t of cudnn_adv.h.
inline constexpr int kLstm = 2;
inline constexpr int kGru = 3;

struct CudnnRnn {
  int cell = 0;
  int bias = 2;  // cudnnRNNBiasMode_t: 0 none, 1 of the input, 2 both, 3 of the state
  bool bidirectional = false;
  bool skip_input = false;
  int data_type = 0;
  int input = 1;
  int hidden = 1;
  int projection = 0;  // as wide as `hidden`, or 0: none
  int layers = 1;
};

extern Objects<CudnnRnn> cudnn_rnns;

struct RnnMatrix {
  int rows;
  int columns;
};

int Gates(const CudnnRnn& rnn);
bool HasProjection(const CudnnRnn& rnn);
int Matrices(const CudnnRnn& rnn);      // of a pseudo layer
int PseudoLayers(const CudnnRnn& rnn);  // layers times directions
RnnMatrix MatrixShape(const CudnnRnn& rnn, int pseudo_layer, int which);
bool HasBias(const CudnnRnn& rnn, int which);
std::uint64_t MatrixOffset(const CudnnRnn& rnn, int pseudo_layer, int which);
std::uint64_t BiasOffset(const CudnnRnn& rnn, int pseudo_layer, int which);
std::uint64_t WeightElements(const CudnnRnn& rnn);

// Of each step, sample and pseudo layer the gates and states that a derivative needs: an LSTM's four gates, its cell
// and its output (6 times as wide as `hidden`), a GRU's three gates, its inner product and its output (5), else the
// output. An assumption: what the library keeps beside them is not published.
std::uint64_t ReserveElements(const CudnnRnn& rnn, std::uint64_t steps, std::uint64_t batch);

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_API_CUDNN_RNN_H_
