// Sizes and strides beyond kernels/ops/view.h: in which order of the dims PyTorch lays out what it allocates.
//
// Sources: aten/native TensorIterator.cpp (the order of an elementwise output), TensorUtils.cpp, PyTorch 2.6.
#ifndef ASHLAR_KERNELS_TENSOR_SHAPE_H_
#define ASHLAR_KERNELS_TENSOR_SHAPE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/ops/view.h"

namespace ashlar::kernels {

using ops::Dims;
using ops::DType;

struct Layout {
  Dims sizes = {};
  Dims strides = {};
};

bool IsContiguous(const Layout& layout);
// Every element at a place of its own and no gaps, in some order of the dims.
bool IsDense(const Layout& layout);
// The strides of a copy that keeps the order of the dims: the tensor's own when it is dense.
Dims PreservedStrides(const Layout& layout);
// The layout seen with `sizes`, to which it must broadcast: new and repeated dims have stride 0.
Layout Expanded(const Layout& layout, const Dims& sizes);
// What an elementwise operation over these operands allocates: the broadcast sizes, in the common order of the strides.
Layout ElementwiseLayout(absl::Span<const Layout* const> operands);
// -1 in one place stands for what is left of `elements`.
Dims InferSizes(const Dims& wanted, std::int64_t elements);
// A dim counted from the end when negative.
std::size_t DimIndex(std::int64_t dim, std::size_t dims);

// Rounded up: a whole number of parts of `b`, and the next multiple of `to`. Neither argument is negative, `b` and `to`
// are greater than 0.
constexpr std::int64_t DivideUp(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
constexpr std::int64_t RoundUp(std::int64_t a, std::int64_t to) { return DivideUp(a, to) * to; }

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_TENSOR_SHAPE_H_
