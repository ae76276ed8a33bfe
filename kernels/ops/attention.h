// Attention: the softmax and dropout of materialised scores, and the tiled form that never stores the scores.
//
// Dropout is counter-based: element i of a tensor (in row order) is kept or not by word i % 4 of Philox 4x32-10 with
// key `seed` and counter `offset` + i / 4, so that host and CUDA drop the same elements, a backward pass can draw them
// again, and tiled attention drops the elements (b, h, query, key) that a Dropout of the scores (B, H, Sq, Sk) would.
// A tensor of n elements uses ceil(n / 4) counters: the caller moves `offset` on by that.
#ifndef ASHLAR_KERNELS_OPS_ATTENTION_H_
#define ASHLAR_KERNELS_OPS_ATTENTION_H_

#include <cstdint>
#include <optional>

#include "kernels/ops/view.h"

namespace ashlar::ops {

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

}  // namespace ashlar::ops

#endif  // ASHLAR_KERNELS_OPS_ATTENTION_H_
