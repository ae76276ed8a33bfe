// First values of tensors, made on the host and copied over: the same on every device and machine. Only where there is
// arithmetic.
#ifndef ASHLAR_KERNELS_NN_FILL_H_
#define ASHLAR_KERNELS_NN_FILL_H_

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

// Normal numbers (float32), drawn from the context's random numbers; a deviation of 0 fills with the mean.
void FillNormal(const Tensor& tensor, double mean, double deviation);
// (2, S, D / 2) float32: cosines and sines of position s times theta^(-2i / D).
void FillRotary(const Tensor& table, double theta);
// (1, length) int64: arange.
Tensor CountedPositions(Context& context, std::int64_t length);
// Contiguous tensors of int64, int32.
void FillIds(const Tensor& tensor, absl::Span<const std::int64_t> values);

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_NN_FILL_H_
