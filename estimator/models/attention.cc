#include "estimator/models/attention.h"

#include <limits>
#include <utility>
#include <vector>

#include "kernels/autograd/index.h"
#include "kernels/autograd/node.h"
#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/views.h"

namespace ashlar::kernels {
namespace {

bool IsSeen(std::int64_t query, std::int64_t key, const std::optional<std::int64_t>& window) {
  return key <= query && (!window.has_value() || query - key < *window);
}

}  // namespace

Tensor CausalBuffer(Context& context, std::int64_t length, std::optional<std::int64_t> window) {
  Tensor out = Empty(context, {1, 1, length, length}, DType::kBool, Part::kWeights);
  if (!context.computes()) return out;
  std::vector<std::uint8_t> sees;
  for (std::int64_t query = 0; query < length; ++query) {
    for (std::int64_t key = 0; key < length; ++key) sees.push_back(IsSeen(query, key, window) ? 1 : 0);
  }
  context.CopyBytes(out.view().data, sees.data(), sees.size());
  return out;
}

Tensor CausalBias(Context& context, std::int64_t length, DType dtype, std::optional<std::int64_t> window) {
  Tensor lowest = Empty(context, {length, length + 1}, dtype);
  const Tensor upper = EmptyLike(lowest);  // triu
  lowest.reset();
  Tensor columns = Empty(context, {length + 1}, DType::kInt64);
  const Tensor is_later = Empty(context, {length, length + 1}, DType::kBool);
  columns.reset();
  if (context.computes() && dtype == DType::kFloat32) {
    std::vector<float> values;
    for (std::int64_t query = 0; query < length; ++query) {
      for (std::int64_t key = 0; key <= length; ++key) {
        values.push_back(IsSeen(query, key, window) ? 0 : std::numeric_limits<float>::lowest());
      }
    }
    context.CopyBytes(upper.view().data, values.data(), values.size() * sizeof(float));
  }
  return View(upper, {1, 1, length, length + 1});
}

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

namespace {

// torch.cat([empty, x], dim=-2) of an empty one of that dtype: a contiguous copy in the wider of both.
Tensor JoinedToEmpty(const Tensor& x, DType dtype) {
  const InOperation in(x.context(), "cat");
  Tensor out = Empty(x.context(), x.sizes(), dtype);
  if (x.context().computes()) x.context().Do(ops::Copy{x.view(), out.view()});
  if (Records(x)) {
    Record("CatBackward", out, {x}, {}, [](Gradients& g) { g.out[0] = Slice(g.grad, -2, 0, g.grad.size(-2)); });
  }
  return out;
}

}  // namespace

void UpdateCache(std::vector<Tensor>* cache, bool joins, Tensor& key, Tensor& value) {
  if (cache == nullptr) return;
  if (joins) {  // both empty ones have the key's dtype: autocast turns positions' keys to float, and so the values
    Tensor joined_key = JoinedToEmpty(key, key.dtype());
    Tensor joined_value = JoinedToEmpty(value, Promoted(value, key));
    key = std::move(joined_key);
    value = std::move(joined_value);
  }
  cache->push_back(Detach(key));
  cache->push_back(Detach(value));
}

namespace {

struct Unpadding {
  Tensor indices;  // (tokens), int64: where they are in the batch
  Tensor starts;   // (B + 1), int32: of each sample
};

// _get_unpad_data, without the scratch of CUB (a few KiB).
Unpadding UnpaddingOf(const LayerMask& mask) {
  Context& context = mask.tensor.context();
  const std::int64_t batch = mask.tensor.size(0);
  Unpadding out;
  Tensor lengths = Empty(context, {batch}, DType::kInt32);
  Empty(context, mask.tensor.sizes(), DType::kInt32);  // the mask as it is summed
  {
    const Tensor count = Empty(context, {1}, DType::kInt32);  // of nonzero
    out.indices = Empty(context, {mask.tokens}, DType::kInt64);
  }
  Empty(context, {}, DType::kInt32);  // the longest
  const Tensor ends = Empty(context, {batch}, DType::kInt32);
  out.starts = Empty(context, {batch + 1}, DType::kInt32);
  lengths.reset();
  return out;
}

}  // namespace

LayerMask FlashMask(const Call& call) {
  if (!call.mask.defined()) return {};
  LookForPadding(call.mask.context(), call.mask.sizes());
  return {call.mask, call.tokens == 0 ? call.mask.elements() : call.tokens};
}

Tensor FlashForward(const Tensor& query_in, const Tensor& key_in, const Tensor& value_in, const LayerMask& mask,
                    const ScaledAttention& call) {
  Context& context = query_in.context();
  const auto narrow = [&](const Tensor& t) {
    return t.dtype() == DType::kFloat32 ? Cast(t, context.autocast_dtype()) : t;
  };
  Tensor query = narrow(query_in), key = narrow(key_in), value = narrow(value_in);
  if (!mask.tensor.defined() || context.computes()) return FlashAttention(query, key, value, call);
  const std::int64_t batch = query.size(0), length = query.size(1);
  Unpadding unpadding = UnpaddingOf(mask);
  const auto unpad = [&](const Tensor& t) {
    return TakeRows(Reshape(t, {batch * length, t.size(2), t.size(3)}), unpadding.indices);
  };
  key = unpad(key);
  value = unpad(value);
  query = unpad(query);
  const Tensor out = UnpaddedFlashAttention(query, key, value, unpadding.starts);
  const Tensor padded = PutRows(out, unpadding.indices, batch * length);
  Release(query, key, value, unpadding.starts);
  return View(padded, {batch, length, padded.size(1), padded.size(2)});
}

}  // namespace ashlar::kernels
