#include "kernels/nn/padding_mask.h"

#include <limits>
#include <vector>

#include "kernels/autograd/cast.h"
#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/views.h"

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

// find_packed_sequence_indices: (position_ids.diff() != 1).cumsum(-1), (B, S).
Tensor PackedIndices(Context& context, std::int64_t batch, std::int64_t length) {
  const Tensor before_first = Empty(context, {batch, 1}, DType::kInt64);
  Tensor joined = Empty(context, {batch, length + 1}, DType::kInt64);
  const Tensor differences = Empty(context, {batch, length}, DType::kInt64);
  joined.reset();
  const Tensor is_new = Empty(context, {batch, length}, DType::kBool);
  Tensor out = Empty(context, {batch, length}, DType::kInt64);
  const Tensor wide = Empty(context, {batch, length}, DType::kInt64);
  return out;
}

// The samples' indices at queries or keys, by index under vmap: index arithmetic, then what is looked up.
Tensor PackedAt(Context& context, std::int64_t batch, std::int64_t length) {
  const Tensor wrapped = Empty(context, {batch, length}, DType::kInt64);
  const Tensor linear = Empty(context, {batch, length}, DType::kInt64);
  return Empty(context, {batch, length}, DType::kInt64);
}

// 0 where a key may be seen: that of full batches, seen for each sample. (B, 1, S, S), contiguous, in float alone.
void FillCausal(const Tensor& out) {
  Context& context = out.context();
  if (!context.computes() || out.dtype() != DType::kFloat32) return;
  const std::int64_t length = out.size(-1);
  std::vector<float> values;
  for (std::int64_t row = 0; row < out.size(0) * length; ++row) {
    for (std::int64_t key = 0; key < length; ++key) {
      values.push_back(key <= row % length ? 0 : std::numeric_limits<float>::lowest());
    }
  }
  context.CopyBytes(out.view().data, values.data(), values.size() * sizeof(float));
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
    {
      Tensor columns = Empty(context, {length}, DType::kInt64);
      const Tensor is_later = Empty(context, {length, length}, DType::kBool);
      columns.reset();
    }
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

Tensor PackedCausalMask(Context& context, std::int64_t batch, std::int64_t length) {
  const Tensor packed = PackedIndices(context, batch, length);
  const Tensor keys = Empty(context, {length}, DType::kInt64), samples = Empty(context, {batch}, DType::kInt64);
  const Tensor heads = Empty(context, {1}, DType::kInt64);
  Tensor causal;
  {
    const Tensor ones = Empty(context, {length}, DType::kBool);
    const Tensor compared = Empty(context, {length, length}, DType::kBool);
    causal = Empty(context, {length, length}, DType::kBool);
  }
  Tensor same;
  {
    const Tensor of_query = PackedAt(context, batch, length), of_key = PackedAt(context, batch, length);
    same = Empty(context, {batch, 1, length, length}, DType::kBool);
  }
  Tensor out = EmptyLike(same);
  if (context.computes()) {
    std::vector<std::uint8_t> sees;
    for (std::int64_t row = 0; row < batch * length; ++row) {
      for (std::int64_t key = 0; key < length; ++key) sees.push_back(key <= row % length ? 1 : 0);
    }
    context.CopyBytes(out.view().data, sees.data(), sees.size());
  }
  return out;
}

Tensor PackedCausalBias(Context& context, std::int64_t batch, std::int64_t length, DType dtype) {
  const Tensor sees = PackedCausalMask(context, batch, length);
  const Tensor zero = Empty(context, {}, dtype), lowest = Empty(context, {}, dtype);
  Tensor out = Empty(context, sees.sizes(), dtype);
  FillCausal(out);
  return out;
}

}  // namespace ashlar::kernels
