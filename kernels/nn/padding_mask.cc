#include "kernels/nn/padding_mask.h"

#include <vector>

#include "kernels/autograd/cast.h"
#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/views.h"
#include "kernels/nn/causal_mask.h"

namespace ashlar::kernels {
namespace {

Dims SizesOf(const Tensor& mask) { return {mask.size(0), 1, mask.size(1), mask.size(1)}; }

// Nothing is hidden.
Tensor Open(Context& context, const Dims& sizes, DType dtype) {
  Tensor out = Empty(context, sizes, dtype);
  if (context.computes()) context.Do(ops::Fill{out.view(), 0});
  return out;
}

// _expand_mask: the mask in `dtype` and inverted live until what is filled is returned.
Tensor Expanded(const Tensor& mask, DType dtype) {
  Context& context = mask.context();
  const Tensor expanded = Empty(context, SizesOf(mask), dtype), inverted = Empty(context, SizesOf(mask), dtype);
  const Tensor hides = Empty(context, SizesOf(mask), DType::kBool);
  return Open(context, SizesOf(mask), dtype);
}

// expanded.mul(~torch.all(expanded == lowest, dim=-1, keepdim=True))
Tensor Unmasked(const Tensor& bias) {
  Context& context = bias.context();
  Dims rows = bias.sizes();
  rows.back() = 1;
  Tensor sees = Empty(context, rows, DType::kBool);
  {
    Tensor is_lowest = Empty(context, bias.sizes(), DType::kBool);
    const Tensor is_empty = Empty(context, rows, DType::kBool);
    sees.reset();
    is_lowest.reset();
    sees = Empty(context, rows, DType::kBool);
  }
  Tensor out = Empty(context, bias.sizes(), bias.dtype());
  if (context.computes()) context.Do(ops::Copy{bias.view(), out.view()});
  return out;
}

// 0 where a key may be seen: that of full batches, seen for each sample.
void FillCausal(const Tensor& out) {
  Context& context = out.context();
  if (!context.computes()) return;
  const std::int64_t length = out.size(-1);
  const Tensor one = Slice(CausalBias(context, length, out.dtype()), 3, 0, length);
  context.Do(ops::Copy{Expand(one, out.sizes()).view(), out.view()});
}

}  // namespace

void LookForPadding(Context& context, const Dims& sizes) {
  const Tensor is_one = Empty(context, sizes, DType::kBool);
  Empty(context, {1}, DType::kBool);
}

Tensor RowBias(const Tensor& mask, DType dtype) {
  const Tensor wide = Cast(View(mask, {mask.size(0), 1, 1, mask.size(1)}), dtype);
  Tensor inverted = EmptyLike(wide);
  if (wide.context().computes()) wide.context().Do(ops::Affine{wide.view(), -1, 1, inverted.view()});
  return MulScalar(inverted, -10'000);
}

Tensor ExpandedBias(const Tensor& mask, DType dtype) {
  LookForPadding(mask.context(), mask.sizes());
  return Expanded(mask, dtype);
}

Tensor CausalBiasOf(const Tensor& mask, DType dtype, bool is_fused) {
  Context& context = mask.context();
  const std::int64_t length = mask.size(1);
  if (is_fused) LookForPadding(context, mask.sizes());
  Tensor causal = Empty(context, {length, length}, DType::kFloat32);
  {
    const Tensor places = Empty(context, {length}, DType::kInt64), next = Empty(context, {length}, DType::kInt64);
    const Tensor sees = Empty(context, {length, length}, DType::kBool);
  }
  if (dtype != DType::kFloat32) causal = Empty(context, {length, length}, dtype);
  const Tensor expanded = Expanded(mask, dtype);
  Tensor bias;
  {
    const Tensor hides = Empty(context, SizesOf(mask), DType::kBool);
    bias = Empty(context, SizesOf(mask), dtype);
  }
  FillCausal(bias);
  return is_fused ? Unmasked(bias) : bias;
}

Tensor UpdatedCausalBias(const Tensor& mask, DType dtype, bool is_fused) {
  Context& context = mask.context();
  const std::int64_t length = mask.size(1);
  if (is_fused) LookForPadding(context, mask.sizes());
  Tensor bias;
  {
    Tensor lowest = Empty(context, {length, length}, dtype);
    const Tensor upper = EmptyLike(lowest);  // triu
    lowest.reset();
    const Tensor columns = Empty(context, {length}, DType::kInt64);
    const Tensor is_later = Empty(context, {length, length}, DType::kBool);
    bias = Empty(context, SizesOf(mask), dtype);  // clone
  }
  {
    Tensor sum = Empty(context, SizesOf(mask), dtype);
    const Tensor is_padding = Empty(context, SizesOf(mask), DType::kBool);
    sum.reset();
    const Tensor filled = Empty(context, SizesOf(mask), dtype);
  }
  FillCausal(bias);
  return is_fused ? Unmasked(bias) : bias;
}

}  // namespace ashlar::kernels
