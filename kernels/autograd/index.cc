#include "kernels/autograd/index.h"

#include <algorithm>

#include "allocator/base/check.h"
#include "kernels/autograd/node.h"
#include "kernels/autograd/views.h"

namespace ashlar::kernels {
namespace {

constexpr std::int64_t kMostUnsorted = 3072;  // embedding_dense_backward_cuda: above, indices are sorted
constexpr std::int64_t kPartialRows = 10;     // rows a partial segment sums (NROWS_PER_THREAD)

Tensor Indices(Context& context, std::int64_t n) { return Empty(context, {n}, DType::kInt64); }
Tensor Bytes(Context& context, std::uint64_t n) {
  return Empty(context, {static_cast<std::int64_t>(n)}, DType::kUint8);
}

Tensor Lookup(const Tensor& weight, const Tensor& indices) {
  Context& context = weight.context();
  Dims sizes = indices.sizes();
  sizes.push_back(weight.size(1));
  Tensor out = Empty(context, std::move(sizes), weight.dtype());
  if (context.computes()) context.Do(ops::Embedding{weight.view(), indices.view(), out.view()});
  return out;
}

void SumRows(Context& context, const Tensor& grad, const Tensor& indices, const Tensor& out) {
  const Tensor rows = Contiguous(grad);
  if (!context.computes()) return;
  context.Do(ops::EmbeddingBackward{rows.view(), indices.view(), -1, false, out.view()});
}

void SortScratch(Context& context, std::int64_t n) {
  const Tensor sorted = Indices(context, n);
  const Tensor original = Indices(context, n);
  const Tensor range = Indices(context, n);
  const Tensor scratch = Bytes(context, SortScratchBytes(n));
}

// The dense gradient, and what the sorted path holds until it has summed the segments.
Tensor EmbeddingGradient(Context& context, const Tensor& grad, const Tensor& indices, const Dims& table) {
  Tensor out = Zeros(context, table, grad.dtype());
  const std::int64_t n = indices.elements();
  if (n > kMostUnsorted) {
    const Tensor sorted = Indices(context, n);
    const Tensor original = Indices(context, n);
    {
      const Tensor range = Indices(context, n);
      const Tensor scratch = Bytes(context, SortScratchBytes(n));
    }
    const std::int64_t most_segments = std::min(n, table[0]);
    const Tensor offsets = Indices(context, n);
    const Tensor partials_of = Indices(context, most_segments);
    const Tensor partial_begin = Indices(context, most_segments);
    const std::int64_t most_partials = n / kPartialRows + most_segments;
    const Tensor partial_offsets = Indices(context, most_partials);
    const Tensor partial_sums = Empty(context, {most_partials, table[1]}, DType::kFloat32);
  }
  SumRows(context, grad, indices, out);
  return out;
}

// What index_put with accumulation holds: the index wrapped, made linear, sorted.
void IndexPutScratch(Context& context, std::int64_t n) {
  Tensor wrapped = Indices(context, n);
  const Tensor linear = Indices(context, n);
  wrapped.reset();
  SortScratch(context, n);
}

Tensor IndexGradient(Context& context, const Tensor& grad, const Tensor& indices, const Dims& table) {
  Tensor out = Zeros(context, table, grad.dtype());
  IndexPutScratch(context, indices.elements());
  SumRows(context, grad, indices, out);
  return out;
}

Dims WithRows(const Dims& sizes, std::int64_t rows) {
  Dims out = sizes;
  out[0] = rows;
  return out;
}

// `ids` repeated over the other dims of `sizes`.
ops::View Along(const Tensor& ids, std::size_t dim, const Dims& sizes) {
  ops::View out = ids.view();
  const std::int64_t stride = out.strides[0];
  out.sizes = sizes;
  out.strides.assign(sizes.size(), 0);
  out.strides[dim] = stride;
  return out;
}

}  // namespace

std::uint64_t SortScratchBytes(std::int64_t n) { return n <= 2048 ? 1 : static_cast<std::uint64_t>(16 * n + 6655); }

Tensor Embedding(const Tensor& weight, const Tensor& indices) {
  const InOperation in(weight.context(), "embedding");
  Tensor out = Lookup(weight, Contiguous(indices));
  if (Records(weight)) {
    Record("EmbeddingBackward", out, {weight}, {Detach(indices)}, [table = weight.sizes()](Gradients& g) {
      g.out[0] = EmbeddingGradient(g.context, g.grad, Contiguous(g.saved[0]), table);
    });
  }
  return out;
}

Tensor FromHost(const Tensor& indices, std::int64_t width, bool is_trained) {
  const InOperation in(indices.context(), "to");
  Context& context = indices.context();
  Dims sizes = indices.sizes();
  sizes.push_back(width);
  Tensor out = Zeros(context, std::move(sizes), DType::kFloat32);
  if (is_trained && context.grad_enabled()) Record("ToHostBackward", out, {}, {}, [](Gradients&) {});
  return out;
}

Tensor IndexRows(const Tensor& weight, const Tensor& indices) {
  const InOperation in(weight.context(), "index");
  Tensor out = Lookup(weight, indices);
  if (Records(weight)) {
    Record("IndexBackward", out, {weight}, {Detach(indices)},
           [table = weight.sizes()](Gradients& g) { g.out[0] = IndexGradient(g.context, g.grad, g.saved[0], table); });
  }
  return out;
}

Tensor IndexDim(const Tensor& x, std::int64_t dim, const Tensor& ids) {
  const InOperation in(x.context(), "index");
  Context& context = x.context();
  const std::size_t at = DimIndex(dim, x.sizes().size());
  Dims sizes = x.sizes();
  sizes[at] = ids.elements();
  Tensor out = Empty(context, sizes, x.dtype());
  if (context.computes()) {
    context.Do(ops::Gather{x.view(), static_cast<int>(at), Along(ids, at, sizes), out.view()});
  }
  if (Records(x)) {
    Record("IndexBackward", out, {x}, {Detach(ids)}, [whole = x.sizes(), at](Gradients& g) {
      g.out[0] = Zeros(g.context, whole, g.grad.dtype());
      IndexPutScratch(g.context, g.saved[0].elements());
      if (!g.context.computes()) return;
      const ops::View index = Along(g.saved[0], at, g.grad.sizes());
      g.context.Do(ops::ScatterAdd{g.grad.view(), static_cast<int>(at), index, g.out[0].view()});
    });
  }
  return out;
}

Tensor TakeRows(const Tensor& x, const Tensor& rows) {
  const InOperation in(x.context(), "index_first_axis");
  ASHLAR_CHECK(!x.context().computes());
  Tensor out = Empty(x.context(), WithRows(x.sizes(), rows.elements()), x.dtype());
  if (Records(x)) {
    Record("IndexFirstAxisBackward", out, {x}, {Detach(rows)}, [whole = x.sizes()](Gradients& g) {
      const Tensor grad = Contiguous(g.grad);
      g.out[0] = Zeros(g.context, whole, grad.dtype());
    });
  }
  return out;
}

Tensor PutRows(const Tensor& values, const Tensor& rows, std::int64_t count) {
  const InOperation in(values.context(), "pad_input");
  ASHLAR_CHECK(!values.context().computes());
  Tensor out = Zeros(values.context(), WithRows(values.sizes(), count), values.dtype());
  if (Records(values)) {
    Record("IndexPutFirstAxisBackward", out, {values}, {Detach(rows)}, [](Gradients& g) {
      g.out[0] = Empty(g.context, WithRows(g.grad.sizes(), g.saved[0].elements()), g.grad.dtype());
    });
  }
  return out;
}

Tensor Gather(const Tensor& x, const Tensor& index) {
  const InOperation in(x.context(), "gather");
  Context& context = x.context();
  const int dim = static_cast<int>(x.rank()) - 1;
  Tensor out = Empty(context, index.sizes(), x.dtype());
  if (context.computes()) context.Do(ops::Gather{x.view(), dim, index.view(), out.view()});
  if (Records(x)) {
    Record("GatherBackward", out, {x}, {Detach(index), Detach(x)}, [dim](Gradients& g) {
      g.out[0] = Zeros(g.context, g.saved[1].sizes(), g.grad.dtype());
      if (g.context.computes()) {
        g.context.Do(ops::ScatterAdd{g.grad.view(), dim, g.saved[0].view(), g.out[0].view()});
      }
    });
  }
  return out;
}

}  // namespace ashlar::kernels
