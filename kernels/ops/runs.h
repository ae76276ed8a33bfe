// Walks operands of the same sizes together, as runs: neighbouring dims merge where every operand allows it, and the
// innermost is the one in which the first operand, the output, moves least.
//
//   Runs runs(op.out.sizes, {&op.out, &op.in});
//   runs.ForEach([&](const Runs::Offsets& at) { ... runs.length() elements from at[0], at[1], steps runs.stride(k) ...
//   });
#ifndef ASHLAR_KERNELS_OPS_RUNS_H_
#define ASHLAR_KERNELS_OPS_RUNS_H_

#include <array>
#include <cstdint>
#include <initializer_list>

#include "kernels/ops/view.h"

namespace ashlar::ops {

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

#endif  // ASHLAR_KERNELS_OPS_RUNS_H_
