// Makes of an attention mask what transformers makes of it for padded batches, with the temporaries
// (modeling_attn_mask_utils.py 4.41 to 4.51; _update_causal_mask of llama). Where there is arithmetic, no token is
// padding.
#ifndef ASHLAR_KERNELS_NN_PADDING_MASK_H_
#define ASHLAR_KERNELS_NN_PADDING_MASK_H_

#include "kernels/tensor/context.h"
#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

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

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_NN_PADDING_MASK_H_
