// Sums, means and maxima over dims, and the buffers that the reduction kernel takes for them.
#ifndef ASHLAR_KERNELS_AUTOGRAD_REDUCE_H_
#define ASHLAR_KERNELS_AUTOGRAD_REDUCE_H_

#include <cstdint>
#include <initializer_list>

#include "kernels/tensor/framework.h"
#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

Tensor Sum(const Tensor& x, std::int64_t dim, bool keeps_dim);
Tensor Mean(const Tensor& x, std::int64_t dim, bool keeps_dim);
Tensor MeanOfAll(const Tensor& x);

struct MaxResult {
  Tensor values;
  Tensor indices;  // int64
};
// keepdim = True.
MaxResult Max(const Tensor& x, std::int64_t dim);

// Sums what was broadcast from `sizes`; no graph. A view of the sum where dims are dropped.
Tensor SumTo(const Tensor& x, const Dims& sizes);

// What a reduction of `in` to `out_sizes` (as many dims, 1 where reduced) holds during the call: partial results of the
// blocks that share an output, and a counter for each group of outputs. Source: setReduceConfig and gpu_reduce_kernel,
// aten/native/cuda/Reduce.cuh, PyTorch 1.13 and 2.6.
struct ReductionScratch {
  std::uint64_t partial_bytes = 0;
  std::uint64_t counter_bytes = 0;
};
ReductionScratch ScratchOfReduction(const GpuKind& gpu, const Layout& in, const Dims& out_sizes);

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_AUTOGRAD_REDUCE_H_
