// A View is a tensor as an op sees it: an address, a dtype, sizes and strides. It owns nothing.
//
//   View scores = Contiguous(data, DType::kFloat16, {4, 12, 128, 128});
//   View row = {.data = p, .dtype = DType::kFloat32, .sizes = {4, 64}, .strides = {0, 1}};  // one row, seen four times
//
// Sizes and strides count elements, bytes are named so; a stride is never negative, 0 repeats. No dims is one element,
// a size of 0 is no element. A view of a dry backend carries an address too, but nobody reads or writes there.
#ifndef ASHLAR_KERNELS_OPS_VIEW_H_
#define ASHLAR_KERNELS_OPS_VIEW_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "kernels/ops/kinds.h"

namespace ashlar::ops {

std::int64_t SizeOf(DType dtype);       // bytes of an element
absl::string_view NameOf(DType dtype);  // "float32", "bfloat16", "int64", "bool", ...
bool IsFloat(DType dtype);              // float32, float16, bfloat16
bool IsIndex(DType dtype);              // int64, int32

using Dims = absl::InlinedVector<std::int64_t, 5>;

// The most dims an op takes.
inline constexpr int kMostDims = 8;

struct View {
  void* data = nullptr;
  DType dtype = DType::kFloat32;
  Dims sizes = {};
  Dims strides = {};

  int rank() const { return static_cast<int>(sizes.size()); }
};

std::int64_t ElementCount(const Dims& sizes);
Dims ContiguousStrides(const Dims& sizes);
View Contiguous(void* data, DType dtype, const Dims& sizes);

// True when the elements lie in order with no hole; dims of size 1 do not matter, nor does an empty view.
bool IsContiguous(const View& view);
// True when no two elements share an address, as an output must: sorted by stride, each dim begins where the smaller
// ones end, or later.
bool IsOneToOne(const View& view);

// Bytes of the elements, and bytes from the first element's begin to the last one's end.
std::uint64_t ElementBytes(const View& view);
std::uint64_t SpanBytes(const View& view);

// The strides with which the same storage has `new_sizes` (of as many elements), if there are any: neighbours merge
// where stride_outer = size_inner * stride_inner, dims of size 1 are ignored. Without, a reshape must copy.
std::optional<Dims> StridesForReshape(const Dims& sizes, const Dims& strides, const Dims& new_sizes);

// The sizes that both broadcast to, aligned at the last dim; nothing where a pair differs and neither is 1.
std::optional<Dims> BroadcastSizes(const Dims& left, const Dims& right);
// `view` seen with `sizes`: new and repeated dims have stride 0. Nothing where it does not broadcast to them.
std::optional<View> BroadcastTo(const View& view, const Dims& sizes);

// "float16[4, 128, 768]", and " strides [0, 768, 1]" behind it where the view is not contiguous.
std::string ToString(const View& view);
std::string ToString(const Dims& sizes);  // "[4, 128, 768]"

// Walks operands of the same sizes together, as runs: neighbouring dims merge where every operand allows it, and the
// innermost is the one in which the first operand, the output, moves least.
//
//   Runs runs(op.out.sizes, {&op.out, &op.in});
//   runs.ForEach([&](const Runs::Offsets& at) { ... runs.length() elements from at[0], at[1], steps runs.stride(k) ...
//   });
class Runs {
 public:
  static constexpr int kMostOperands = 4;
  using Offsets = std::array<std::int64_t, kMostOperands>;  // in elements

  // Each operand broadcasts to `sizes`.
  Runs(const Dims& sizes, std::initializer_list<const View*> operands);

  std::int64_t length() const { return size_[0]; }                        // elements of a run
  std::int64_t stride(int operand) const { return stride_[0][operand]; }  // within a run
  std::int64_t count() const { return count_; }

  // After merging, dim 0 innermost, at least one.
  int dims() const { return dims_; }
  std::int64_t size(int dim) const { return size_[dim]; }
  std::int64_t stride(int dim, int operand) const { return stride_[dim][operand]; }

  template <typename Body>
  void ForEach(const Body& body) const {
    Offsets at = {};
    std::array<std::int64_t, kMostDims> index = {};
    for (std::int64_t run = 0; run < count_; ++run) {
      body(at);
      for (int dim = 1; dim < dims_; ++dim) {
        for (int k = 0; k < kMostOperands; ++k) at[k] += stride_[dim][k];
        if (++index[dim] < size_[dim]) break;
        for (int k = 0; k < kMostOperands; ++k) at[k] -= stride_[dim][k] * size_[dim];
        index[dim] = 0;
      }
    }
  }

 private:
  int dims_ = 0;
  std::int64_t count_ = 0;  // of runs; 0 where there is no element
  std::array<std::int64_t, kMostDims> size_ = {};
  std::array<std::array<std::int64_t, kMostOperands>, kMostDims> stride_ = {};
};

}  // namespace ashlar::ops

#endif  // ASHLAR_KERNELS_OPS_VIEW_H_
