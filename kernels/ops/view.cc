#include "kernels/ops/view.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "allocator/base/check.h"

namespace ashlar::ops {

std::int64_t SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kInt64:
      return 8;
    case DType::kFloat32:
    case DType::kInt32:
      return 4;
    case DType::kFloat16:
    case DType::kBFloat16:
      return 2;
    case DType::kUint8:
    case DType::kBool:
      return 1;
  }
  return 0;
}

absl::string_view NameOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "float32";
    case DType::kFloat16:
      return "float16";
    case DType::kBFloat16:
      return "bfloat16";
    case DType::kInt64:
      return "int64";
    case DType::kInt32:
      return "int32";
    case DType::kUint8:
      return "uint8";
    case DType::kBool:
      return "bool";
  }
  return "no dtype";
}

bool IsFloat(DType dtype) { return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16; }
bool IsIndex(DType dtype) { return dtype == DType::kInt64 || dtype == DType::kInt32; }

std::int64_t ElementCount(const Dims& sizes) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return count;
}

Dims ContiguousStrides(const Dims& sizes) {
  Dims strides(sizes.size());
  std::int64_t stride = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<std::int64_t>(sizes[i], 1);
  }
  return strides;
}

View Contiguous(void* data, DType dtype, const Dims& sizes) {
  return {.data = data, .dtype = dtype, .sizes = sizes, .strides = ContiguousStrides(sizes)};
}

bool IsContiguous(const View& view) {
  if (ElementCount(view.sizes) == 0) return true;
  std::int64_t stride = 1;
  for (std::size_t i = view.sizes.size(); i-- > 0;) {
    if (view.sizes[i] == 1) continue;
    if (view.strides[i] != stride) return false;
    stride *= view.sizes[i];
  }
  return true;
}

bool IsOneToOne(const View& view) {
  absl::InlinedVector<std::pair<std::int64_t, std::int64_t>, 5> by_stride;
  for (std::size_t i = 0; i < view.sizes.size(); ++i) {
    if (view.sizes[i] == 0) return true;
    if (view.sizes[i] > 1) by_stride.emplace_back(view.strides[i], view.sizes[i]);
  }
  std::sort(by_stride.begin(), by_stride.end());
  std::int64_t end = 1;
  for (const auto& [stride, size] : by_stride) {
    if (stride < end) return false;
    end = stride * (size - 1) + end;
  }
  return true;
}

std::uint64_t ElementBytes(const View& view) {
  return static_cast<std::uint64_t>(ElementCount(view.sizes) * SizeOf(view.dtype));
}

std::uint64_t SpanBytes(const View& view) {
  if (ElementCount(view.sizes) == 0) return 0;
  std::int64_t last = 0;
  for (std::size_t i = 0; i < view.sizes.size(); ++i) last += (view.sizes[i] - 1) * view.strides[i];
  return static_cast<std::uint64_t>((last + 1) * SizeOf(view.dtype));
}

std::optional<Dims> StridesForReshape(const Dims& sizes, const Dims& strides, const Dims& new_sizes) {
  ASHLAR_CHECK_EQ(ElementCount(sizes), ElementCount(new_sizes));
  if (ElementCount(sizes) == 0) return ContiguousStrides(new_sizes);
  Dims new_strides(new_sizes.size(), 1);
  // From the last dim on: runs of old dims that merge into one of `run` elements with step `base`, each of which a run
  // of new dims must divide exactly.
  std::int64_t old_dim = static_cast<std::int64_t>(sizes.size()) - 1;
  std::int64_t new_dim = static_cast<std::int64_t>(new_sizes.size()) - 1;
  while (old_dim >= 0) {
    std::int64_t run = sizes[old_dim];
    std::int64_t base = strides[old_dim];
    --old_dim;
    for (; old_dim >= 0; --old_dim) {
      if (sizes[old_dim] == 1) continue;
      if (run == 1) {
        base = strides[old_dim];
      } else if (strides[old_dim] != run * base) {
        break;
      }
      run *= sizes[old_dim];
    }
    std::int64_t covered = 1;
    while (new_dim >= 0 && (covered < run || new_sizes[new_dim] == 1)) {
      new_strides[new_dim] = covered * base;
      covered *= new_sizes[new_dim];
      --new_dim;
    }
    if (covered != run) return std::nullopt;
  }
  return new_strides;
}

std::optional<Dims> BroadcastSizes(const Dims& left, const Dims& right) {
  const Dims& longer = left.size() >= right.size() ? left : right;
  const Dims& shorter = left.size() >= right.size() ? right : left;
  Dims sizes = longer;
  const std::size_t lead = longer.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    std::int64_t& size = sizes[lead + i];
    if (size == 1) size = shorter[i];
    if (shorter[i] != 1 && shorter[i] != size) return std::nullopt;
  }
  return sizes;
}

std::optional<View> BroadcastTo(const View& view, const Dims& sizes) {
  if (view.sizes.size() > sizes.size()) return std::nullopt;
  View seen = {.data = view.data, .dtype = view.dtype, .sizes = sizes, .strides = Dims(sizes.size(), 0)};
  const std::size_t lead = sizes.size() - view.sizes.size();
  for (std::size_t i = 0; i < view.sizes.size(); ++i) {
    if (view.sizes[i] == sizes[lead + i]) {
      seen.strides[lead + i] = view.strides[i];
    } else if (view.sizes[i] != 1) {
      return std::nullopt;
    }
  }
  return seen;
}

std::string ToString(const Dims& sizes) { return absl::StrCat("[", absl::StrJoin(sizes, ", "), "]"); }

std::string ToString(const View& view) {
  std::string text = absl::StrCat(NameOf(view.dtype), ToString(view.sizes));
  if (!IsContiguous(view)) absl::StrAppend(&text, " strides ", ToString(view.strides));
  return text;
}

Runs::Runs(const Dims& sizes, std::initializer_list<const View*> operands) {
  struct Dim {
    std::int64_t size = 1;
    Offsets stride = {};
  };
  absl::InlinedVector<Dim, kMostDims> dims;
  ASHLAR_CHECK_LE(operands.size(), static_cast<std::size_t>(kMostOperands));
  for (std::size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 1) continue;
    Dim dim = {.size = sizes[i]};
    int k = 0;
    for (const View* operand : operands) {
      const std::size_t lead = sizes.size() - operand->sizes.size();
      const bool is_repeated = i < lead || operand->sizes[i - lead] == 1;
      dim.stride[k++] = is_repeated ? 0 : operand->strides[i - lead];
    }
    dims.push_back(dim);
  }
  std::stable_sort(dims.begin(), dims.end(), [](const Dim& a, const Dim& b) { return a.stride[0] < b.stride[0]; });
  for (const Dim& dim : dims) {
    bool is_merged = dims_ > 0;
    for (int k = 0; is_merged && k < kMostOperands; ++k) {
      is_merged = dim.stride[k] == stride_[dims_ - 1][k] * size_[dims_ - 1];
    }
    if (is_merged) {
      size_[dims_ - 1] *= dim.size;
    } else {
      size_[dims_] = dim.size;
      stride_[dims_++] = dim.stride;
    }
  }
  if (dims_ == 0) size_[dims_++] = 1;
  count_ = 1;
  for (int dim = 0; dim < dims_; ++dim) count_ *= dim == 0 ? std::min<std::int64_t>(size_[0], 1) : size_[dim];
}

}  // namespace ashlar::ops
