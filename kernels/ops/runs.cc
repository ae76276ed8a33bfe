#include "kernels/ops/runs.h"

#include <algorithm>
#include <cstddef>

#include "allocator/base/check.h"

namespace ashlar::ops {

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
