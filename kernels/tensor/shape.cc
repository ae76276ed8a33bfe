#include "kernels/tensor/shape.h"

#include <algorithm>
#include <numeric>

#include "allocator/base/check.h"

namespace ashlar::kernels {
namespace {

// Innermost dim first: the first of them moves fastest.
using Order = absl::InlinedVector<std::size_t, 5>;

// > 0: dim b belongs inside dim a; < 0: it does not; 0: no operand can tell.
int CompareDims(absl::Span<const Layout* const> operands, std::size_t a, std::size_t b) {
  for (const Layout* operand : operands) {
    const std::int64_t of_a = operand->strides[a], of_b = operand->strides[b];
    if (of_a == 0 || of_b == 0) continue;
    if (of_a != of_b) return of_a < of_b ? -1 : 1;
    if (operand->sizes[a] > operand->sizes[b]) return 1;
  }
  return 0;
}

// An insertion sort, as the comparison is not transitive where dims are repeated.
Order SortedDims(absl::Span<const Layout* const> operands) {
  Order order(operands[0]->sizes.size());
  std::iota(order.rbegin(), order.rend(), std::size_t{0});
  for (std::size_t i = 1; i < order.size(); ++i) {
    std::size_t at = i;
    for (std::size_t before = i; before-- > 0;) {
      const int compared = CompareDims(operands, order[before], order[at]);
      if (compared < 0) break;
      if (compared == 0) continue;
      std::swap(order[before], order[at]);
      at = before;
    }
  }
  return order;
}

Dims StridesInOrder(const Dims& sizes, const Order& order) {
  Dims strides(sizes.size());
  std::int64_t step = 1;
  for (const std::size_t dim : order) {
    strides[dim] = step;
    step *= std::max<std::int64_t>(sizes[dim], 1);
  }
  return strides;
}

}  // namespace

bool IsContiguous(const Layout& layout) {
  std::int64_t step = 1;
  for (std::size_t dim = layout.sizes.size(); dim-- > 0;) {
    if (layout.sizes[dim] == 1) continue;
    if (layout.strides[dim] != step) return false;
    step *= layout.sizes[dim];
  }
  return true;
}

bool IsDense(const Layout& layout) {
  if (IsContiguous(layout)) return true;
  Order order;
  for (std::size_t dim = 0; dim < layout.sizes.size(); ++dim) {
    if (layout.sizes[dim] != 1) order.push_back(dim);
  }
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return layout.strides[a] < layout.strides[b]; });
  std::int64_t step = 1;
  for (const std::size_t dim : order) {
    if (layout.strides[dim] != step) return false;
    step *= layout.sizes[dim];
  }
  return true;
}

Dims PreservedStrides(const Layout& layout) {
  if (IsDense(layout)) return layout.strides;
  const Layout* const only = &layout;
  return StridesInOrder(layout.sizes, SortedDims({&only, 1}));
}

Layout Expanded(const Layout& layout, const Dims& sizes) {
  Layout out{sizes, Dims(sizes.size(), 0)};
  const std::size_t shift = sizes.size() - layout.sizes.size();
  for (std::size_t dim = 0; dim < layout.sizes.size(); ++dim) {
    ASHLAR_CHECK(layout.sizes[dim] == sizes[dim + shift] || layout.sizes[dim] == 1);
    if (layout.sizes[dim] == sizes[dim + shift]) out.strides[dim + shift] = layout.strides[dim];
  }
  return out;
}

Layout ElementwiseLayout(absl::Span<const Layout* const> operands) {
  Layout out{operands[0]->sizes, {}};
  bool is_plain = true;
  for (const Layout* operand : operands) {
    is_plain = is_plain && IsContiguous(*operand);
    if (operand->sizes == out.sizes) continue;
    const std::optional<Dims> both = ops::BroadcastSizes(out.sizes, operand->sizes);
    ASHLAR_CHECK(both.has_value());
    out.sizes = *both;
  }
  if (is_plain) {
    out.strides = ops::ContiguousStrides(out.sizes);
    return out;
  }
  absl::InlinedVector<Layout, 3> expanded;
  for (const Layout* operand : operands) expanded.push_back(Expanded(*operand, out.sizes));
  absl::InlinedVector<const Layout*, 3> pointers;
  for (const Layout& operand : expanded) pointers.push_back(&operand);
  out.strides = StridesInOrder(out.sizes, SortedDims(pointers));
  return out;
}

Dims InferSizes(const Dims& wanted, std::int64_t elements) {
  Dims out = wanted;
  const auto open = std::find(out.begin(), out.end(), -1);
  if (open != out.end()) {
    *open = 1;
    *open = elements / ops::ElementCount(out);
  }
  ASHLAR_CHECK(ops::ElementCount(out) == elements);
  return out;
}

std::size_t DimIndex(std::int64_t dim, std::size_t dims) {
  const std::int64_t index = dim < 0 ? dim + static_cast<std::int64_t>(dims) : dim;
  ASHLAR_CHECK(index >= 0 && index < static_cast<std::int64_t>(dims));
  return static_cast<std::size_t>(index);
}

}  // namespace ashlar::kernels
