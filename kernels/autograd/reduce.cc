#include "kernels/autograd/reduce.h"

#include <algorithm>

#include "kernels/autograd/cast.h"
#include "kernels/autograd/node.h"
#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/views.h"

namespace ashlar::kernels {
namespace {

using ops::ReduceKind;

// `out_sizes` has the dims of x, 1 where reduced. The output first, then the kernel's buffers, counters freed first.
Tensor Reduced(ReduceKind kind, const Tensor& x, const Dims& out_sizes) {
  Context& context = x.context();
  Tensor out = EmptyOf(x, out_sizes);
  const ReductionScratch scratch = ScratchOfReduction(context.gpu(), x.layout(), out_sizes);
  if (scratch.partial_bytes != 0) {
    const Tensor partial = Empty(context, {static_cast<std::int64_t>(scratch.partial_bytes)}, DType::kUint8);
    const Tensor counters = Empty(context, {static_cast<std::int64_t>(scratch.counter_bytes)}, DType::kUint8);
  }
  if (context.computes()) context.Do(ops::Reduce{kind, x.view(), out.view()});
  return out;
}

Dims WithOne(const Tensor& x, std::size_t dim) {
  Dims sizes = x.sizes();
  sizes[dim] = 1;
  return sizes;
}

// A dim that a reduction dropped, put back by a view.
Tensor Drop(const Tensor& x, std::size_t dim, bool keeps_dim) {
  if (keeps_dim) return x;
  Layout layout = x.layout();
  layout.sizes.erase(layout.sizes.begin() + static_cast<std::ptrdiff_t>(dim));
  layout.strides.erase(layout.strides.begin() + static_cast<std::ptrdiff_t>(dim));
  Tensor out = Alias(x, std::move(layout), 0);
  out.body().is_view = false;  // the kernel's own output, whose dim was dropped
  return out;
}

}  // namespace

Tensor Sum(const Tensor& input, std::int64_t dim, bool keeps_dim) {
  const InOperation in(input.context(), "sum");
  const Tensor x = ForFloat(input);
  const std::size_t at = DimIndex(dim, x.sizes().size());
  Tensor out = Drop(Reduced(ReduceKind::kSum, x, WithOne(x, at)), at, keeps_dim);
  if (Records(x)) {
    Record("SumBackward", out, {x}, {}, [sizes = x.sizes(), at, keeps_dim](Gradients& g) {
      const Tensor grad = keeps_dim ? g.grad : Unsqueeze(g.grad, static_cast<std::int64_t>(at));
      g.out[0] = Expand(grad, sizes);
    });
  }
  return out;
}

Tensor Mean(const Tensor& x, std::int64_t dim, bool keeps_dim) {
  const InOperation in(x.context(), "mean");
  const std::size_t at = DimIndex(dim, x.sizes().size());
  Tensor out = Drop(Reduced(ReduceKind::kMean, x, WithOne(x, at)), at, keeps_dim);
  if (Records(x)) {
    const bool saves = x.context().framework().mean_of_dims_saves_input;
    Record("MeanBackward", out, {x}, {Keep(saves, x)}, [sizes = x.sizes(), at, keeps_dim](Gradients& g) {
      const Tensor grad = keeps_dim ? g.grad : Unsqueeze(g.grad, static_cast<std::int64_t>(at));
      const Tensor expanded = Expand(grad, sizes);
      g.out[0] = DivScalar(expanded, static_cast<double>(sizes[at]));
    });
  }
  return out;
}

Tensor MeanOfAll(const Tensor& x) {
  const InOperation in(x.context(), "mean");
  Tensor reduced = Reduced(ReduceKind::kMean, x, Dims(x.sizes().size(), 1));
  Tensor out = Alias(reduced, {}, 0);
  out.body().is_view = false;
  if (Records(x)) {
    const bool saves = x.context().framework().mean_saves_input;
    Record("MeanBackward", out, {x}, {Keep(saves, x)}, [sizes = x.sizes()](Gradients& g) {
      const Tensor expanded = Expand(g.grad, sizes);
      g.out[0] = DivScalar(expanded, static_cast<double>(ops::ElementCount(sizes)));
    });
  }
  return out;
}

MaxResult Max(const Tensor& x, std::int64_t dim) {
  const InOperation in(x.context(), "max");
  Context& context = x.context();
  const std::size_t at = DimIndex(dim, x.sizes().size());
  MaxResult out;
  out.values = EmptyOf(x, WithOne(x, at));
  out.indices = Empty(context, WithOne(x, at), DType::kInt64);
  if (context.computes()) {
    context.Do(ops::MaxAlong{x.view(), static_cast<int>(at), out.values.view(), out.indices.view()});
  }
  if (Records(x)) {
    Record("MaxBackward", out.values, {x}, {Detach(out.indices)}, [sizes = x.sizes(), at](Gradients& g) {
      g.out[0] = Zeros(g.context, sizes, g.grad.dtype());
      if (g.context.computes()) {
        g.context.Do(ops::ScatterAdd{g.grad.view(), static_cast<int>(at), g.saved[0].view(), g.out[0].view()});
      }
    });
  }
  return out;
}

Tensor SumTo(const Tensor& x, const Dims& sizes) {
  Dims kept(x.sizes().size(), 1);
  std::copy(sizes.rbegin(), sizes.rend(), kept.rbegin());
  const Tensor reduced = kept == x.sizes() ? x : Reduced(ReduceKind::kSum, x, kept);
  return sizes.size() == kept.size() ? reduced : View(reduced, sizes);
}

}  // namespace ashlar::kernels
