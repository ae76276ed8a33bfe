// _flash_attention_forward of transformers 4.37 to 4.51: the package flash_attn 2 over a batch, of which padding is
// taken out before and put back behind, in each layer anew (_upad_input; index_first_axis and pad_input of the
// package's bert_padding.py).
//
//   Tensor out = FlashForward(query, key, value, {mask, tokens}, {.is_causal = true});
//
// Where there is arithmetic, no token is padding.
#ifndef ASHLAR_KERNELS_NN_FLASH_FORWARD_H_
#define ASHLAR_KERNELS_NN_FLASH_FORWARD_H_

#include "kernels/autograd/scaled_attention.h"
#include "kernels/nn/call.h"
#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

// The call's mask, after the look for a zero in it; none of a full batch.
LayerMask FlashMask(const Call& call);

// query (B, S, H, D), key and value (B, S, Hkv, D); the result (B, S, H, D). Floats are cast to autocast's dtype.
Tensor FlashForward(const Tensor& query, const Tensor& key, const Tensor& value, const LayerMask& mask,
                    const ScaledAttention& call);

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_NN_FLASH_FORWARD_H_
