// Other views of a tensor's storage, and the copies that are made where no view will do. A view's gradient is a view
// too, but where its strides forbid it: then `Reshape` of a gradient copies, as PyTorch's does.
#ifndef ASHLAR_KERNELS_AUTOGRAD_VIEWS_H_
#define ASHLAR_KERNELS_AUTOGRAD_VIEWS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

// -1 in one place stands for what is left. Reshape copies where the strides forbid a view, View is a bug then.
Tensor View(const Tensor& tensor, const Dims& sizes);
Tensor Reshape(const Tensor& tensor, const Dims& sizes);
Tensor Permute(const Tensor& tensor, absl::Span<const std::int64_t> dims);
Tensor Transpose(const Tensor& tensor, std::int64_t a, std::int64_t b);
Tensor Unsqueeze(const Tensor& tensor, std::int64_t dim);
Tensor Squeeze(const Tensor& tensor, std::int64_t dim);
Tensor Expand(const Tensor& tensor, const Dims& sizes);
Tensor Select(const Tensor& tensor, std::int64_t dim, std::int64_t index);
Tensor Slice(const Tensor& tensor, std::int64_t dim, std::int64_t begin, std::int64_t end);
// The colon of x[:, 0]: nothing, or a slice of the whole dim, whose gradient is then copied into zeros.
Tensor Whole(const Tensor& tensor, std::int64_t dim);
// All of a dim, each without it; backward stacks their gradients.
std::vector<Tensor> Unbind(const Tensor& tensor, std::int64_t dim);
// Equal parts of a dim; backward joins their gradients.
std::vector<Tensor> Chunk(const Tensor& tensor, std::int64_t parts, std::int64_t dim);

// The tensor itself where it is contiguous.
Tensor Contiguous(const Tensor& tensor);
// A contiguous joint; backward hands out views of one gradient.
Tensor Cat(absl::Span<const Tensor> tensors, std::int64_t dim);
Tensor Stack(absl::Span<const Tensor> tensors, std::int64_t dim);

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_AUTOGRAD_VIEWS_H_
