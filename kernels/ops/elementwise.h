// Ops of one element at a time, and the reductions that undo a broadcast. Sizes broadcast to those of `out` as in
// numpy; any strides. Unless said otherwise operands are float32, float16 or bfloat16, mixed as they come: an element
// is widened to float, computed in float and rounded to nearest even into `out`, so no cast needs a temporary. `out`
// may be one of the operands (same address and strides), else it must not overlap them.
#ifndef ASHLAR_KERNELS_OPS_ELEMENTWISE_H_
#define ASHLAR_KERNELS_OPS_ELEMENTWISE_H_

#include <cstdint>

#include "kernels/ops/kinds.h"
#include "kernels/ops/view.h"

namespace ashlar::ops {

// out = value. Any dtype.
struct Fill {
  static constexpr char kName[] = "fill";
  View out;
  double value = 0;
};

// out[i] = start + i * step, out of one dim. Float or index dtype.
struct Arange {
  static constexpr char kName[] = "arange";
  View out;
  double start = 0;
  double step = 1;
};

// out = in, broadcast and cast. Any two dtypes; float to integer cuts towards 0, anything but 0 to bool is true.
struct Copy {
  static constexpr char kName[] = "copy";
  View in;
  View out;
};

const char* NameOf(UnaryKind kind);
// True where the gradient is computed from the result, false where from the input (AUTOGRAD: what is saved).
bool SavesResult(UnaryKind kind);

struct Unary {
  static constexpr char kName[] = "unary";
  UnaryKind kind;
  View in;
  View out;
};

// out = grad * f'(x), from the result of sqrt, rsqrt, reciprocal, exp, sigmoid, tanh, relu and from the input of the
// others. Negate reads nothing of `saved`.
struct UnaryBackward {
  static constexpr char kName[] = "unary_backward";
  UnaryKind kind;
  View grad;
  View saved;
  View out;
};

// out = in * scale + shift.
struct Affine {
  static constexpr char kName[] = "affine";
  View in;
  double scale = 1;
  double shift = 0;
  View out;
};

const char* NameOf(BinaryKind kind);

// out = left (kind) scale * right; `scale` for add and subtract only.
struct Binary {
  static constexpr char kName[] = "binary";
  BinaryKind kind;
  View left;
  View right;
  double scale = 1;
  View out;
};

// out = base + value * left * right, or value * left / right.
struct AddProduct {
  static constexpr char kName[] = "add_product";
  View base;
  View left;
  View right;
  double value = 1;
  bool is_quotient = false;
  View out;
};

// out = left (kind) right, bool. Any dtype; integers are compared as such if both are, else as float.
struct Compare {
  static constexpr char kName[] = "compare";
  CompareKind kind;
  View left;
  View right;
  View out;
};

// out = mask ? yes : no. The mask is bool or uint8; the others have out's dtype, any.
struct Where {
  static constexpr char kName[] = "where";
  View mask;
  View yes;
  View no;
  View out;
};

// out = mask ? value : in.
struct MaskedFill {
  static constexpr char kName[] = "masked_fill";
  View in;
  View mask;
  double value = 0;
  View out;
};

// Reduces `in` to the sizes of `out`, which broadcast to in's: dims that `out` lacks or has as 1 are reduced. Sums are
// float, in an order that depends on the sizes alone. An empty reduction: sum 0, mean NaN, maximum -inf, minimum inf.
struct Reduce {
  static constexpr char kName[] = "reduce";
  ReduceKind kind;
  View in;
  View out;
};

// The largest of a dim and where the first such lies (a NaN is larger than anything): values and indices (int64) have
// in's sizes with 1 at `dim`.
struct MaxAlong {
  static constexpr char kName[] = "max_along";
  View in;
  int dim = 0;
  View values;
  View indices;
};

// out[.., i, ..] = in[.., index[.., i, ..], ..] along `dim`; index (int64, int32) has out's sizes, which may be smaller
// than in's in the other dims. An index outside [0, size): kOutOfRange on the host, NaN on CUDA.
struct Gather {
  static constexpr char kName[] = "gather";
  View in;
  int dim = 0;
  View index;
  View out;
};

// out[.., index[.., i, ..], ..] += in[.., i, ..] along `dim`, summed in the order of i: deterministic, and slow for
// a long index (one thread walks it). An index outside: kOutOfRange on the host, left out on CUDA.
struct ScatterAdd {
  static constexpr char kName[] = "scatter_add";
  View in;
  int dim = 0;
  View index;
  View out;
};

}  // namespace ashlar::ops

#endif  // ASHLAR_KERNELS_OPS_ELEMENTWISE_H_
