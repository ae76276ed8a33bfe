// What the attention of models is given: the arguments of a call, masks, cached keys, and the fused kernel.
#ifndef ASHLAR_ESTIMATOR_MODELS_ATTENTION_H_
#define ASHLAR_ESTIMATOR_MODELS_ATTENTION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/autograd/scaled_attention.h"
#include "kernels/tensor/context.h"
#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

// The arguments of a model's call beside ids and labels, and the form of the mask that its layers get.
struct Call {
  // attention_mask, (B, S) int64, of a batch whose samples differ in length; none: all are as long as the batch.
  Tensor mask = {};
  // Gets what the call returns beside the loss, for a caller whose variable holds it; nullptr: it ends with the call.
  std::vector<Tensor>* outputs = nullptr;
  // That the mask shows, of all samples; 0: as many as it has.
  std::int64_t tokens = 0;

  template <typename... Tensors>
  void Return(const Tensors&... tensors) const {
    if (outputs == nullptr) return;
    (outputs->push_back(tensors), ...);
  }
  // A tuple, which CPython ends from the last to the first (tupledealloc, Objects/tupleobject.c).
  void ReturnTuple(const std::vector<Tensor>& tensors) const {
    if (outputs != nullptr) outputs->insert(outputs->end(), tensors.rbegin(), tensors.rend());
  }
};

// What a layer gets of the attention mask: a bias of the scores, or with flash_attn the mask itself.
struct LayerMask {
  Tensor tensor;            // undefined: nothing is hidden
  std::int64_t tokens = 0;  // of all samples without padding, for flash_attn; 0: none is padding
};

// Causal masks as models hold or make them.

// A module's buffer (1, 1, length, length) bool: true where a key may be seen, `window` tokens back where it is
// limited.
Tensor CausalBuffer(Context& context, std::int64_t length, std::optional<std::int64_t> window = {});

// What transformers' _update_causal_mask makes for scores where no mask is given, with its temporaries: (1, 1, length,
// length + 1), 0 where a key may be seen, else the dtype's lowest.
Tensor CausalBias(Context& context, std::int64_t length, DType dtype, std::optional<std::int64_t> window = {});

// Makes of an attention mask what transformers makes of it for padded batches, with the temporaries
// (modeling_attn_mask_utils.py 4.41 to 4.51; _update_causal_mask of llama). Where there is arithmetic, no token is
// padding.

// `mask` (B, S) int64.

// (1 - mask) * lowest in `dtype`, (B, 1, 1, S): added to scores.
Tensor RowBias(const Tensor& mask, DType dtype);
// _prepare_4d_attention_mask_for_sdpa: (B, 1, S, S), after a look whether all tokens are seen.
Tensor ExpandedBias(const Tensor& mask, DType dtype);
// _prepare_4d_causal_attention_mask: (B, 1, S, S); `is_fused`: .._for_sdpa, where rows that see nothing are unmasked.
Tensor CausalBiasOf(const Tensor& mask, DType dtype, bool is_fused);
// llama's _update_causal_mask, (B, 1, S, S).
Tensor UpdatedCausalBias(const Tensor& mask, DType dtype, bool is_fused);
// torch.all(mask == 1), for its temporaries: what full batches' masks end at.
void LookForPadding(Context& context, const Dims& sizes);

// create_causal_mask where no cache is kept: (B, 1, S, S) bool, true where a key may be seen, made from positions that
// are looked at for packed samples. With a dtype, for eager attention, the bias that it is turned into.
Tensor PackedCausalMask(Context& context, std::int64_t batch, std::int64_t length);
Tensor PackedCausalBias(Context& context, std::int64_t batch, std::int64_t length, DType dtype);

// The keys and values that a decoder keeps until its outputs end (cache_utils.py).
//
//   UpdateCache(pass.cache, versions.cache_joins, key, value);

// DynamicCache.update for a layer's first tokens, (B, H, S, D) each. `cache` null: none is kept. Where it joins, both
// become contiguous copies in the key's dtype or a wider one, which attention uses from here on.
void UpdateCache(std::vector<Tensor>* cache, bool joins, Tensor& key, Tensor& value);

// _flash_attention_forward of transformers 4.37 to 4.51: the package flash_attn 2 over a batch, of which padding is
// taken out before and put back behind, in each layer anew (_upad_input; index_first_axis and pad_input of the
// package's bert_padding.py).
//
//   Tensor out = FlashForward(query, key, value, {mask, tokens}, {.is_causal = true});
//
// Where there is arithmetic, no token is padding.

// The call's mask, after the look for a zero in it; none of a full batch.
LayerMask FlashMask(const Call& call);

// query (B, S, H, D), key and value (B, S, Hkv, D); the result (B, S, H, D). Floats are cast to autocast's dtype.
Tensor FlashForward(const Tensor& query, const Tensor& key, const Tensor& value, const LayerMask& mask,
                    const ScaledAttention& call);

}  // namespace ashlar::kernels

#endif  // ASHLAR_ESTIMATOR_MODELS_ATTENTION_H_
