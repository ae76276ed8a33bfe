// How the reduction kernel cuts its work, as far as its memory depends on it.

#include "kernels/autograd/reduce.h"

#include <algorithm>
#include <bit>

#include "kernels/autograd/node.h"
#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/views.h"
#include "kernels/tensor/shape.h"

namespace ashlar::kernels {
namespace {

constexpr std::int64_t kMostThreads = 512;  // of a block, divided by the outputs of a thread
constexpr std::int64_t kWarp = 32;
constexpr std::int64_t kVector = 4;  // elements a thread reads at once, where they lie together
constexpr std::int64_t kFewValues = 16;
constexpr std::int64_t kManyValues = 256;
constexpr std::int64_t kPartialBytes = 4;  // sums are float whatever the dtype

std::int64_t LastPowerOf2(std::int64_t n) {
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1))));
}

struct ReductionShape {
  std::int64_t inputs = 1;  // values of an output
  std::int64_t outputs = 1;
  std::int64_t fastest = 1;  // size of the innermost run
  bool reduces_fastest = false;
  bool is_one_run = false;  // everything into one value, without gaps
};

ReductionShape ShapeOf(const Layout& in, const Dims& out_sizes) {
  ReductionShape out;
  std::int64_t smallest = 0;
  for (std::size_t dim = 0; dim < in.sizes.size(); ++dim) {
    if (in.sizes[dim] == 1) continue;
    const bool is_reduced = out_sizes[dim] == 1;
    (is_reduced ? out.inputs : out.outputs) *= in.sizes[dim];
    if (smallest == 0 || in.strides[dim] < smallest) {
      smallest = in.strides[dim];
      out.reduces_fastest = is_reduced;
      out.fastest = in.sizes[dim];
    }
  }
  out.is_one_run = out.outputs == 1 && IsDense(in);
  out.reduces_fastest = out.reduces_fastest || out.outputs == 1;
  return out;
}

}  // namespace

ReductionScratch ScratchOfReduction(const GpuKind& gpu, const Layout& in, const Dims& out_sizes) {
  const ReductionShape shape = ShapeOf(in, out_sizes);
  std::int64_t width_bound = shape.reduces_fastest ? shape.inputs : shape.outputs;
  const std::int64_t height_bound = shape.reduces_fastest ? shape.outputs : shape.inputs;
  std::int64_t outputs_a_thread = 1;
  if (shape.reduces_fastest) {
    if (shape.is_one_run && width_bound > 128) width_bound /= kVector;
  } else {
    outputs_a_thread = kVector;
    while (shape.fastest % outputs_a_thread != 0) outputs_a_thread /= 2;
    width_bound /= outputs_a_thread;
  }

  const std::int64_t most = kMostThreads / outputs_a_thread;
  const std::int64_t width_power = std::min(LastPowerOf2(width_bound), most);
  const std::int64_t height_power = std::min(LastPowerOf2(height_bound), most);
  std::int64_t width = std::min(width_power, kWarp);
  const std::int64_t height = std::min(height_power, most / width);
  width = std::min(width_power, most / height);

  std::int64_t input_step = 1, output_step = 1;
  (shape.reduces_fastest ? input_step : output_step) *= width;
  bool splits_rows = false;
  if (DivideUp(shape.inputs, input_step) >= std::min(height * kFewValues, kManyValues)) {
    input_step *= height;
    splits_rows = true;
  } else {
    output_step *= height;
  }
  const std::int64_t groups = DivideUp(shape.outputs / outputs_a_thread, output_step);
  const std::int64_t values = DivideUp(shape.inputs, input_step);
  const std::int64_t target = gpu.sm_count * (gpu.threads_per_sm / (width * height));
  if (!splits_rows || values < kManyValues || groups > target) return {};
  const std::int64_t blocks =
      std::max(std::min(DivideUp(target, groups), DivideUp(values, kFewValues)), DivideUp(values, kManyValues));
  if (blocks <= 1) return {};
  std::int64_t partial = kPartialBytes * shape.outputs * blocks;
  if (!shape.reduces_fastest) partial *= width * outputs_a_thread;
  return {static_cast<std::uint64_t>(partial), static_cast<std::uint64_t>(4 * groups)};
}

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
