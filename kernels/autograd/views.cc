#include "kernels/autograd/views.h"

#include <algorithm>
#include <optional>

#include "allocator/base/check.h"
#include "kernels/autograd/node.h"

namespace ashlar::kernels {
namespace {

Tensor CopyTo(const Tensor& tensor, Layout layout) {
  const InOperation in(tensor.context(), "contiguous");
  Context& context = tensor.context();
  Tensor out = EmptyStrided(context, std::move(layout), tensor.dtype());
  if (context.computes()) context.Do(ops::Copy{tensor.view(), out.view()});
  return out;
}

Tensor CopyContiguous(const Tensor& tensor) {
  return CopyTo(tensor, {tensor.sizes(), ops::ContiguousStrides(tensor.sizes())});
}

// Records a view whose gradient is the gradient reshaped to the tensor's sizes.
Tensor AsView(const Tensor& tensor, Dims sizes, Dims strides) {
  Tensor out = Alias(tensor, {std::move(sizes), std::move(strides)}, tensor.body().offset);
  if (Records(tensor)) {
    Record("ViewBackward", out, {tensor}, {},
           [sizes = tensor.sizes()](Gradients& g) { g.out[0] = Reshape(g.grad, sizes); });
  }
  return out;
}

// Zeros of `sizes` with the gradient put where the view lies.
Tensor ZerosAround(const Gradients& g, const Dims& sizes, std::size_t dim, std::int64_t begin, bool keeps_dim) {
  Tensor out = Zeros(g.context, sizes, g.grad.dtype());
  if (g.context.computes()) {
    Layout layout = out.layout();
    const std::int64_t offset = begin * layout.strides[dim];
    if (keeps_dim) {
      layout.sizes[dim] = g.grad.sizes()[dim];
    } else {
      layout.sizes.erase(layout.sizes.begin() + static_cast<std::ptrdiff_t>(dim));
      layout.strides.erase(layout.strides.begin() + static_cast<std::ptrdiff_t>(dim));
    }
    g.context.Do(ops::Copy{g.grad.view(), Alias(out, std::move(layout), offset).view()});
  }
  return out;
}

Tensor Narrowed(const Tensor& tensor, std::size_t dim, std::int64_t begin, std::int64_t length) {
  Layout layout = tensor.layout();
  layout.sizes[dim] = length;
  return Alias(tensor, layout, tensor.body().offset + begin * layout.strides[dim]);
}

}  // namespace

Tensor View(const Tensor& tensor, const Dims& wanted) {
  Dims sizes = InferSizes(wanted, tensor.elements());
  std::optional<Dims> strides = ops::StridesForReshape(tensor.sizes(), tensor.strides(), sizes);
  ASHLAR_CHECK(strides.has_value());
  return AsView(tensor, std::move(sizes), *std::move(strides));
}

Tensor Reshape(const Tensor& tensor, const Dims& wanted) {
  Dims sizes = InferSizes(wanted, tensor.elements());
  std::optional<Dims> strides = ops::StridesForReshape(tensor.sizes(), tensor.strides(), sizes);
  if (strides) return AsView(tensor, std::move(sizes), *std::move(strides));
  return View(Contiguous(tensor), sizes);
}

Tensor Permute(const Tensor& tensor, absl::Span<const std::int64_t> dims) {
  Layout layout;
  absl::InlinedVector<std::int64_t, 5> back(dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::size_t from = DimIndex(dims[i], dims.size());
    layout.sizes.push_back(tensor.sizes()[from]);
    layout.strides.push_back(tensor.strides()[from]);
    back[from] = static_cast<std::int64_t>(i);
  }
  Tensor out = Alias(tensor, std::move(layout), tensor.body().offset);
  if (Records(tensor)) {
    Record("PermuteBackward", out, {tensor}, {}, [back](Gradients& g) { g.out[0] = Permute(g.grad, back); });
  }
  return out;
}

Tensor Transpose(const Tensor& tensor, std::int64_t a, std::int64_t b) {
  absl::InlinedVector<std::int64_t, 5> dims;
  for (std::int64_t dim = 0; dim < tensor.rank(); ++dim) dims.push_back(dim);
  std::swap(dims[DimIndex(a, dims.size())], dims[DimIndex(b, dims.size())]);
  return Permute(tensor, dims);
}

Tensor Unsqueeze(const Tensor& tensor, std::int64_t dim) {
  Layout layout = tensor.layout();
  const std::size_t at = DimIndex(dim, layout.sizes.size() + 1);
  const std::int64_t stride = at < layout.sizes.size() ? layout.sizes[at] * layout.strides[at] : 1;
  layout.sizes.insert(layout.sizes.begin() + static_cast<std::ptrdiff_t>(at), 1);
  layout.strides.insert(layout.strides.begin() + static_cast<std::ptrdiff_t>(at), stride);
  Tensor out = Alias(tensor, std::move(layout), tensor.body().offset);
  if (Records(tensor)) {
    Record("UnsqueezeBackward", out, {tensor}, {},
           [at](Gradients& g) { g.out[0] = Squeeze(g.grad, static_cast<std::int64_t>(at)); });
  }
  return out;
}

Tensor Squeeze(const Tensor& tensor, std::int64_t dim) {
  Layout layout = tensor.layout();
  const std::size_t at = DimIndex(dim, layout.sizes.size());
  ASHLAR_CHECK(layout.sizes[at] == 1);
  layout.sizes.erase(layout.sizes.begin() + static_cast<std::ptrdiff_t>(at));
  layout.strides.erase(layout.strides.begin() + static_cast<std::ptrdiff_t>(at));
  Tensor out = Alias(tensor, std::move(layout), tensor.body().offset);
  if (Records(tensor)) {
    Record("SqueezeBackward", out, {tensor}, {},
           [at](Gradients& g) { g.out[0] = Unsqueeze(g.grad, static_cast<std::int64_t>(at)); });
  }
  return out;
}

Tensor Expand(const Tensor& tensor, const Dims& sizes) {
  Tensor out = Alias(tensor, Expanded(tensor.layout(), sizes), tensor.body().offset);
  // The engine sums the gradient to the tensor's sizes.
  if (Records(tensor)) Record("ExpandBackward", out, {tensor}, {}, [](Gradients& g) { g.out[0] = g.grad; });
  return out;
}

Tensor Select(const Tensor& tensor, std::int64_t dim, std::int64_t index) {
  const std::size_t at = DimIndex(dim, tensor.sizes().size());
  Layout layout = tensor.layout();
  const std::int64_t offset = tensor.body().offset + index * layout.strides[at];
  layout.sizes.erase(layout.sizes.begin() + static_cast<std::ptrdiff_t>(at));
  layout.strides.erase(layout.strides.begin() + static_cast<std::ptrdiff_t>(at));
  Tensor out = Alias(tensor, std::move(layout), offset);
  if (Records(tensor)) {
    Record("SelectBackward", out, {tensor}, {}, [sizes = tensor.sizes(), at, index](Gradients& g) {
      g.out[0] = ZerosAround(g, sizes, at, index, /*keeps_dim=*/false);
    });
  }
  return out;
}

Tensor Slice(const Tensor& tensor, std::int64_t dim, std::int64_t begin, std::int64_t end) {
  const std::size_t at = DimIndex(dim, tensor.sizes().size());
  Tensor out = Narrowed(tensor, at, begin, end - begin);
  if (Records(tensor)) {
    Record("SliceBackward", out, {tensor}, {}, [sizes = tensor.sizes(), at, begin](Gradients& g) {
      g.out[0] = ZerosAround(g, sizes, at, begin, /*keeps_dim=*/true);
    });
  }
  return out;
}

Tensor Whole(const Tensor& tensor, std::int64_t dim) {
  if (!tensor.context().framework().full_slices_are_operations) return tensor;
  return Slice(tensor, dim, 0, tensor.size(dim));
}

std::vector<Tensor> Unbind(const Tensor& tensor, std::int64_t dim) {
  const std::size_t at = DimIndex(dim, tensor.sizes().size());
  Layout layout = tensor.layout();
  const std::int64_t count = layout.sizes[at], stride = layout.strides[at];
  layout.sizes.erase(layout.sizes.begin() + static_cast<std::ptrdiff_t>(at));
  layout.strides.erase(layout.strides.begin() + static_cast<std::ptrdiff_t>(at));
  std::vector<Tensor> out;
  for (std::int64_t i = 0; i < count; ++i) out.push_back(Alias(tensor, layout, tensor.body().offset + i * stride));
  if (Records(tensor)) {
    std::vector<Tensor*> outputs;
    for (Tensor& part : out) outputs.push_back(&part);
    Record("UnbindBackward", outputs, {tensor}, {},
           [at](Gradients& g) { g.out[0] = Stack(g.grads, static_cast<std::int64_t>(at)); });
  }
  return out;
}

std::vector<Tensor> Chunk(const Tensor& tensor, std::int64_t parts, std::int64_t dim) {
  const std::size_t at = DimIndex(dim, tensor.sizes().size());
  const std::int64_t length = tensor.sizes()[at] / parts;
  ASHLAR_CHECK(length * parts == tensor.sizes()[at]);
  std::vector<Tensor> out;
  for (std::int64_t i = 0; i < parts; ++i) out.push_back(Narrowed(tensor, at, i * length, length));
  if (Records(tensor)) {
    std::vector<Tensor*> outputs;
    for (Tensor& part : out) outputs.push_back(&part);
    Record("SplitBackward", outputs, {tensor}, {},
           [at](Gradients& g) { g.out[0] = Cat(g.grads, static_cast<std::int64_t>(at)); });
  }
  return out;
}

Tensor Contiguous(const Tensor& tensor) {
  if (IsContiguous(tensor.layout())) return tensor;
  Tensor out = CopyContiguous(tensor);
  if (Records(tensor)) Record("CloneBackward", out, {tensor}, {}, [](Gradients& g) { g.out[0] = g.grad; });
  return out;
}

Tensor Cat(absl::Span<const Tensor> tensors, std::int64_t dim) {
  const InOperation in(tensors[0].context(), "cat");
  Context& context = tensors[0].context();
  const std::size_t at = DimIndex(dim, tensors[0].sizes().size());
  Dims sizes = tensors[0].sizes();
  sizes[at] = 0;
  bool records = false;
  for (const Tensor& tensor : tensors) {
    sizes[at] += tensor.sizes()[at];
    records = records || Records(tensor);
  }
  Tensor out = Empty(context, sizes, tensors[0].dtype());
  if (context.computes()) {
    std::int64_t begin = 0;
    for (const Tensor& tensor : tensors) {
      const std::int64_t length = tensor.sizes()[at];
      context.Do(ops::Copy{tensor.view(), Narrowed(out, at, begin, length).view()});
      begin += length;
    }
  }
  if (!records) return out;
  std::vector<std::int64_t> lengths;
  for (const Tensor& tensor : tensors) lengths.push_back(tensor.sizes()[at]);
  auto node = [at, lengths](Gradients& g) {
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      if (g.Needs(i)) g.out[i] = Slice(g.grad, static_cast<std::int64_t>(at), begin, begin + lengths[i]);
      begin += lengths[i];
    }
  };
  Tensor* const only = &out;
  RecordMany("CatBackward", absl::MakeConstSpan(&only, 1), tensors, {}, std::move(node));
  return out;
}

Tensor Stack(absl::Span<const Tensor> tensors, std::int64_t dim) {
  std::vector<Tensor> unsqueezed;
  for (const Tensor& tensor : tensors) unsqueezed.push_back(Unsqueeze(tensor, dim));
  return Cat(unsqueezed, dim);
}

}  // namespace ashlar::kernels
