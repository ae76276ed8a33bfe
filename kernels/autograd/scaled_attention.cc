#include "kernels/autograd/scaled_attention.h"

#include <cmath>
#include <limits>
#include <vector>

#include "allocator/base/check.h"
#include "kernels/autograd/fused_attention.h"
#include "kernels/autograd/matmul.h"
#include "kernels/autograd/node.h"
#include "kernels/autograd/normalize.h"
#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/views.h"
#include "kernels/tensor/shape.h"

namespace ashlar::kernels {
namespace {

constexpr std::int64_t kAlignedHead = 8;  // elements: FlashAttention pads heads to it
constexpr std::int64_t kAlignedBias = 8;  // elements: the memory-efficient kernel pads rows of a bias to it
constexpr double kNothing = -std::numeric_limits<double>::infinity();

double ScaleOf(const Tensor& query, const ScaledAttention& call) {
  return call.scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1))));
}

// constant_pad_nd with zeros at the end of the last dim; backward cuts a copy out.
Tensor PadLastDim(const Tensor& x, std::int64_t to) {
  const InOperation in(x.context(), "pad");
  const std::int64_t size = RoundUp(x.size(-1), to);
  if (size == x.size(-1)) return x;
  Context& context = x.context();
  Dims sizes = x.sizes();
  sizes.back() = size;
  Tensor out = Zeros(context, sizes, x.dtype());
  if (context.computes()) context.Do(ops::Copy{x.view(), Alias(out, {x.sizes(), out.strides()}, 0).view()});
  if (Records(x)) {
    Record("ConstantPadNdBackward", out, {x}, {}, [size = x.size(-1)](Gradients& g) {
      const Tensor kept = Slice(g.grad, -1, 0, size);
      g.out[0] = EmptyLike(kept);
      if (g.context.computes()) g.context.Do(ops::Copy{kept.view(), g.out[0].view()});
    });
  }
  return out;
}

// A bool mask as what is added to scores.
Tensor BiasOf(const Tensor& mask, DType dtype) {
  if (!mask.defined() || mask.dtype() != DType::kBool) return mask;
  Context& context = mask.context();
  Tensor out;
  if (context.framework().attention_masks_by_where) {
    const Tensor nothing = Empty(context, {}, dtype), zero = Empty(context, {}, dtype);
    out = EmptyLike(mask, dtype);
  } else {
    out = EmptyLike(mask, dtype);
    const Tensor inverted = EmptyLike(mask);
  }
  if (context.computes()) {
    context.Do(ops::Fill{out.view(), kNothing});
    context.Do(ops::MaskedFill{out.view(), mask.view(), 0, out.view()});
  }
  return out;
}

// Rows of aligned length, seen with the scores' sizes.
Tensor AlignedBias(const Tensor& bias, const Tensor& query, const Tensor& key) {
  bool is_aligned = bias.strides().back() == 1;
  for (std::size_t dim = 0; dim + 1 < bias.sizes().size(); ++dim) {
    is_aligned = is_aligned && bias.strides()[dim] % kAlignedBias == 0;
  }
  const std::int64_t keys = bias.size(-1);
  const Tensor rows = is_aligned ? bias : Slice(PadLastDim(bias, kAlignedBias), -1, 0, keys);
  return Expand(rows, {query.size(0), query.size(1), query.size(2), key.size(2)});
}

// ones(S, S).tril(): (queries, keys), true where a key may be seen.
Tensor CausalMask(Context& context, std::int64_t queries, std::int64_t keys) {
  const Tensor ones = Empty(context, {queries, keys}, DType::kBool);
  Tensor out = Empty(context, {queries, keys}, DType::kBool);
  if (!context.computes()) return out;
  std::vector<std::uint8_t> sees(static_cast<std::size_t>(queries * keys), 0);
  for (std::int64_t query = 0; query < queries; ++query) {
    for (std::int64_t key = 0; key <= query && key < keys; ++key)
      sees[static_cast<std::size_t>(query * keys + key)] = 1;
  }
  context.CopyBytes(out.view().data, sees.data(), sees.size());
  return out;
}

// _safe_softmax: the softmax, then rows of -inf alone become 0. Only the result is saved.
Tensor SafeSoftmax(const Tensor& x) {
  Context& context = x.context();
  if (!context.framework().math_attention_softmax_is_safe) return Softmax(x);
  Tensor out;
  {
    const NoGrad no_grad(context);
    const Tensor plain = Softmax(x);
    const Tensor nothing = Empty(context, {}, x.dtype());
    const Tensor is_nothing = EmptyLike(x, DType::kBool);
    Dims rows = x.sizes();
    rows.back() = 1;
    const Tensor is_empty_row = Empty(context, rows, DType::kBool), zero = Empty(context, {}, x.dtype());
    out = EmptyLike(plain);
    if (context.computes()) context.Do(ops::Copy{plain.view(), out.view()});
  }
  if (Records(x)) {
    Record("SafeSoftmaxBackward", out, {x}, {Detach(out)}, [dtype = x.dtype()](Gradients& g) {
      const Tensor grad = Contiguous(g.grad);
      g.out[0] = EmptyLike(g.saved[0], dtype);
      const Tensor product = EmptyLike(grad);
      if (g.context.computes()) {
        g.context.Do(ops::SoftmaxBackward{grad.view(), g.saved[0].view(), false, 1, g.out[0].view()});
      }
    });
  }
  return out;
}

// x.repeat_interleave(heads / key heads, 1)
Tensor RepeatHeads(const Tensor& x, std::int64_t heads) {
  if (x.size(1) == heads) return x;
  Dims sizes = x.sizes();
  sizes.insert(sizes.begin() + 2, heads / x.size(1));
  return View(Contiguous(Expand(Unsqueeze(x, 2), sizes)), {x.size(0), heads, x.size(2), x.size(3)});
}

// _scaled_dot_product_attention_math.
Tensor MathAttention(const Tensor& query_in, const Tensor& key_in, const Tensor& value_in, const Tensor& mask_in,
                     const ScaledAttention& call) {
  const InOperation in(query_in.context(), "scaled_dot_product_attention");
  Context& context = query_in.context();
  const bool widens = context.framework().math_attention_in_float && query_in.dtype() != DType::kFloat32;
  const auto widened = [&](const Tensor& t) { return widens ? Cast(t, DType::kFloat32) : t; };
  const std::int64_t heads = query_in.size(1);
  const Tensor query_wide = widened(query_in), key = RepeatHeads(widened(key_in), heads);
  const Tensor value = RepeatHeads(widened(value_in), heads);
  const double root = std::sqrt(ScaleOf(query_in, call));
  const Tensor query = MulScalar(query_wide, root);
  Tensor mask = call.is_causal ? CausalMask(context, query.size(2), key.size(2)) : mask_in;
  mask = BiasOf(mask, query.dtype());
  Tensor weights;
  {
    const Tensor scaled = MulScalar(Transpose(key, -2, -1), root);
    weights = Matmul(query, scaled);
  }
  if (mask.defined()) weights = AddTo(weights, mask);
  weights = SafeSoftmax(weights);
  if (call.dropout_p > 0) weights = Dropout(weights, call.dropout_p);
  Tensor out = Matmul(weights, value);
  if (!widens) return out;
  out = Cast(out, query_in.dtype());
  weights = Cast(weights, query_in.dtype());  // returned too, and dropped by the caller
  return out;
}

}  // namespace

AttentionBackend BackendOf(const GpuKind& gpu, DType dtype, std::int64_t head_size, bool has_mask,
                           bool can_be_efficient) {
  constexpr std::int64_t kMostFlashHead = 256;
  const bool is_half = dtype != DType::kFloat32, is_ampere = gpu.compute_capability >= 80;
  if (is_half && is_ampere && !has_mask && head_size <= kMostFlashHead) return AttentionBackend::kFlash;
  const std::int64_t aligned = is_half ? 8 : is_ampere ? 4 : 1;
  const bool has_dtype = dtype != DType::kBFloat16 || is_ampere;
  return can_be_efficient && has_dtype && head_size % aligned == 0 ? AttentionBackend::kEfficient
                                                                   : AttentionBackend::kMath;
}

Tensor ScaledDotProductAttention(const Tensor& query_in, const Tensor& key_in, const Tensor& value_in,
                                 const Tensor& mask_in, const ScaledAttention& call) {
  const InOperation in(query_in.context(), "scaled_dot_product_attention");
  Context& context = query_in.context();
  const Tensor mask = mask_in.defined() && ops::IsFloat(mask_in.dtype()) ? ForProduct(mask_in) : mask_in;
  const Tensor value = ForProduct(value_in), key = ForProduct(key_in), query = ForProduct(query_in);
  const Autocast none(context, false, DType::kFloat16);
  ASHLAR_CHECK(!call.is_causal || (!mask.defined() && query.size(2) == key.size(2)));
  ASHLAR_CHECK(!mask.requires_grad());
  FusedAttention fused{ScaleOf(query, call), call.dropout_p, call.is_causal, false};
  const bool can_be_efficient = query.size(1) == key.size(1) || context.framework().efficient_shares_keys;
  switch (BackendOf(context.gpu(), query.dtype(), query.size(-1), mask.defined(), can_be_efficient)) {
    case AttentionBackend::kFlash: {
      fused.has_seeds = context.framework().attention_seeds_on_device;
      const Tensor q = PadLastDim(query, kAlignedHead), k = PadLastDim(key, kAlignedHead),
                   v = PadLastDim(value, kAlignedHead);
      const Tensor out = FlashAttentionOf(q, k, v, fused);
      return q.IsSame(query) ? out : Slice(out, -1, 0, query.size(-1));
    }
    case AttentionBackend::kEfficient: {
      Tensor bias = BiasOf(mask, query.dtype());
      if (bias.defined()) bias = AlignedBias(bias, query, key);
      return EfficientAttentionOf(query, key, value, bias, fused);
    }
    case AttentionBackend::kMath:
      break;
  }
  return MathAttention(query, key, value, mask, call);
}

Tensor FlashAttention(const Tensor& query, const Tensor& key, const Tensor& value, const ScaledAttention& call) {
  const InOperation in(query.context(), "flash_attention");
  const auto by_head = [](const Tensor& t) { return Transpose(t, 1, 2); };
  const FusedAttention fused{ScaleOf(query, call), call.dropout_p, call.is_causal, /*has_seeds=*/true};
  const Tensor q = PadLastDim(query, kAlignedHead), k = PadLastDim(key, kAlignedHead),
               v = PadLastDim(value, kAlignedHead);
  const Tensor out = Transpose(FlashAttentionOf(by_head(q), by_head(k), by_head(v), fused), 1, 2);
  return q.IsSame(query) ? out : Slice(out, -1, 0, query.size(-1));
}

Tensor UnpaddedFlashAttention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& starts) {
  const InOperation in(query.context(), "flash_attention");
  const Tensor q = PadLastDim(query, kAlignedHead), k = PadLastDim(key, kAlignedHead),
               v = PadLastDim(value, kAlignedHead);
  const Tensor out = UnpaddedFlashAttentionOf(q, k, v, starts);
  return q.IsSame(query) ? out : Slice(out, -1, 0, query.size(-1));
}

}  // namespace ashlar::kernels
