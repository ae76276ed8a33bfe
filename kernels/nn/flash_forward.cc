#include "kernels/nn/flash_forward.h"

#include "kernels/autograd/cast.h"
#include "kernels/autograd/index.h"
#include "kernels/autograd/views.h"
#include "kernels/nn/padding_mask.h"

namespace ashlar::kernels {
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
