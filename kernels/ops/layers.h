// The ops of layers: products, attention, losses.
#ifndef ASHLAR_KERNELS_OPS_LAYERS_H_
#define ASHLAR_KERNELS_OPS_LAYERS_H_

#include <cstdint>
#include <optional>

#include "kernels/ops/view.h"

namespace ashlar::ops {

// Products, normalisation and rotary positions. Sums are float whatever the dtypes.

// out = scale * left x right + out_scale * out + bias. left (M, K), right (K, N), out (M, N), or all with one leading
// batch dim (a batch stride of 0 repeats). All of one float dtype. A transposed operand is a view: left and right have
// one stride of 1 among their last two dims and the other at least as long as the row; out has rows with stride 1.
// bias (N), or with two dims broadcast to (M, N). With out_scale 0, what lies in `out` is not read.
struct MatMul {
  static constexpr char kName[] = "matmul";
  View left;
  View right;
  std::optional<View> bias = {};
  double scale = 1;
  double out_scale = 0;
  View out;
};

// Over the last dim of D elements; the other dims are rows. Operands contiguous; weight and bias (D) of any float
// dtype.
//   out = (in - mean) * rstd * weight + bias      mean, rstd: float32, one a row; rstd = 1 / sqrt(variance + epsilon)
struct LayerNorm {
  static constexpr char kName[] = "layer_norm";
  View in;
  std::optional<View> weight = {};
  std::optional<View> bias = {};
  double epsilon = 1e-5;
  View out;
  View mean;
  View rstd;
};

// Each gradient is written if asked for; weight's and bias's are summed over the rows.
struct LayerNormBackward {
  static constexpr char kName[] = "layer_norm_backward";
  View grad;
  View in;
  std::optional<View> weight = {};
  View mean;
  View rstd;
  std::optional<View> grad_in = {};
  std::optional<View> grad_weight = {};
  std::optional<View> grad_bias = {};
};

//   out = in * rstd * weight,  rstd = 1 / sqrt(mean(in^2) + epsilon)
struct RmsNorm {
  static constexpr char kName[] = "rms_norm";
  View in;
  std::optional<View> weight = {};
  double epsilon = 1e-6;
  View out;
  View rstd;
};

struct RmsNormBackward {
  static constexpr char kName[] = "rms_norm_backward";
  View grad;
  View in;
  std::optional<View> weight = {};
  View rstd;
  std::optional<View> grad_in = {};
  std::optional<View> grad_weight = {};
};

// Turns pairs (a, b) of the last dim by the angle of their position: (a cos - b sin, a sin + b cos). in and out
// (B, S, H, D) of any strides, D even; cos and sin (S, D / 2), float32. Pairs are (i, i + D/2), or (2i, 2i + 1) if
// interleaved. `is_inverse` turns back, which is the gradient. out may be in.
struct Rotary {
  static constexpr char kName[] = "rotary";
  View in;
  View cos;
  View sin;
  bool is_interleaved = false;
  bool is_inverse = false;
  View out;
};

// Attention: the softmax and dropout of materialised scores, and the tiled form that never stores the scores.
//
// Dropout is counter-based: element i of a tensor (in row order) is kept or not by word i % 4 of Philox 4x32-10 with
// key `seed` and counter `offset` + i / 4, so that host and CUDA drop the same elements, a backward pass can draw them
// again, and tiled attention drops the elements (b, h, query, key) that a Dropout of the scores (B, H, Sq, Sk) would.
// A tensor of n elements uses ceil(n / 4) counters: the caller moves `offset` on by that.
struct RandomKey {
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;
};

// Over the last dim; in and out contiguous, of any two float dtypes. out = softmax(scale * in), or its logarithm.
// `mask` (bool or uint8) broadcasts to in's sizes; true leaves an element out. `is_causal`, in the last two dims
// (Sq, Sk): query i sees keys up to i + Sk - Sq. A row with nothing left is 0 (its logarithm -inf). out may be in.
struct Softmax {
  static constexpr char kName[] = "softmax";
  View in;
  std::optional<View> mask = {};
  bool is_causal = false;
  bool is_log = false;
  double scale = 1;
  View out;
};

// The gradient of `in` from the result; masks need no mention, their elements' result is 0. out may be grad.
struct SoftmaxBackward {
  static constexpr char kName[] = "softmax_backward";
  View grad;
  View result;
  bool is_log = false;
  double scale = 1;
  View out;
};

// out = in / (1 - p) where kept, else 0; mask (bool or uint8) says which are kept. Contiguous, one float dtype for in
// and out; p in [0, 1): an element is dropped when its 24-bit uniform is below p. out may be in.
struct Dropout {
  static constexpr char kName[] = "dropout";
  View in;
  double p = 0;
  RandomKey key = {};
  View out;
  View mask;
};

struct DropoutBackward {
  static constexpr char kName[] = "dropout_backward";
  View grad;
  View mask;
  double p = 0;
  View out;
};

// What forward and backward share. query (B, H, Sq, D), key and value (B, Hkv, Sk, D), H a multiple of Hkv (query head
// h reads head h / (H / Hkv)); any strides but 1 in the last dim; one float dtype; D at most 256. Lengths (B), int32:
// rows of the batch's b-th sequence; what lies behind them is not read, and its results are 0. Causal: query i sees
// keys up to i + key_length - query_length. A bias, of any float dtype, broadcasts to (B, H, Sq, Sk) and is added to
// the scaled scores; -inf hides a key. CUDA has none yet.
struct AttentionInputs {
  View query;
  View key;
  View value;
  std::optional<View> query_lengths = {};
  std::optional<View> key_lengths = {};
  double scale = 1;
  bool is_causal = false;
  double dropout_p = 0;
  RandomKey random = {};
  std::optional<View> bias = {};
};

// out (B, H, Sq, D), any strides but 1 in the last dim; log_sum_exp (B, H, Sq) float32 contiguous, -inf for a query
// that sees no key (its output is 0), and nothing where its data is nullptr.
struct TiledAttention {
  static constexpr char kName[] = "tiled_attention";
  AttentionInputs inputs;
  View out;
  View log_sum_exp;
};

// Scratch: a float for each (b, h, query). Deterministic: one writer an element, sums in order.
struct TiledAttentionBackward {
  static constexpr char kName[] = "tiled_attention_backward";
  AttentionInputs inputs;
  View out;
  View log_sum_exp;
  View grad;
  View grad_query;
  View grad_key;
  View grad_value;
};

// Embedding lookup and the losses over a vocabulary. Indices and targets are int64 or int32. An index outside the
// vocabulary is kOutOfRange on the host, naming it and where it stands. CUDA cannot say so without a synchronise: there
// a lookup gives a row of NaN, a target a loss of NaN, and a gradient leaves it out.

// out (.., D) = weight (V, D)[indices (..)]. Contiguous; weight and out of one float dtype.
struct Embedding {
  static constexpr char kName[] = "embedding";
  View weight;
  View indices;
  View out;
};

// grad_weight (V, D) = the rows of grad (.., D) summed by their index, in the order in which they stand: float sums,
// the same result each time. Rows that no index names, and that of padding_index, are 0; with is_accumulated they keep
// what they hold and the others add to it. Contiguous.
struct EmbeddingBackward {
  static constexpr char kName[] = "embedding_backward";
  View grad;
  View indices;
  std::int64_t padding_index = -1;
  bool is_accumulated = false;
  View grad_weight;
};

// The targets' ignored rows are those whose target is ignore_index: no loss, no gradient, not counted.
inline constexpr std::int64_t kIgnoreIndex = -100;

// total (one float32) = how many targets are not ignored.
struct CountTargets {
  static constexpr char kName[] = "count_targets";
  View targets;
  std::int64_t ignore_index = kIgnoreIndex;
  View total;
};

// loss = -sum log_probabilities (N, V)[i, targets (N)[i]] / total, total = the targets not ignored; both one float32.
// No targets at all: NaN. Contiguous.
struct NllLoss {
  static constexpr char kName[] = "nll_loss";
  View log_probabilities;
  View targets;
  std::int64_t ignore_index = kIgnoreIndex;
  View loss;
  View total;
};

// out (N, V), written whole: -grad_loss / total at the targets, 0 elsewhere.
struct NllLossBackward {
  static constexpr char kName[] = "nll_loss_backward";
  View grad_loss;
  View targets;
  std::int64_t ignore_index = kIgnoreIndex;
  View total;
  View out;
};

// Softmax and NLL in one pass over logits (N, V), any float dtype: row_loss and log_sum_exp (N) float32, and with them
// loss and total as above (loss = sum of row_loss / total). An ignored row's row_loss is 0.
struct CrossEntropy {
  static constexpr char kName[] = "cross_entropy";
  View logits;
  View targets;
  std::int64_t ignore_index = kIgnoreIndex;
  View row_loss;
  View log_sum_exp;
  View loss;
  View total;
};

// out (N, V) = grad_loss / total * (softmax(logits) - one_hot(targets)); 0 in ignored rows. out may be logits.
struct CrossEntropyBackward {
  static constexpr char kName[] = "cross_entropy_backward";
  View grad_loss;
  View logits;
  View targets;
  std::int64_t ignore_index = kIgnoreIndex;
  View log_sum_exp;
  View total;
  View out;
};

}  // namespace ashlar::ops

#endif  // ASHLAR_KERNELS_OPS_LAYERS_H_
