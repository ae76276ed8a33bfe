// torch.nn.functional.scaled_dot_product_attention: softmax(query key^T scale + mask) value, by the backend that
// PyTorch takes, with what that one saves and allocates (aten/native/transformers/attention.cpp,
// cuda/sdp_utils.cpp, 2.6).
//
//   Tensor out = ScaledDotProductAttention(query, key, value, {}, {.is_causal = true});
//
// Autocast casts all operands. The rules and buffers of FlashAttention are those of version 2 of it (in PyTorch from
// 2.2) for every version; cuDNN's kernel, which some versions prefer on Hopper, is not followed.
#ifndef ASHLAR_KERNELS_AUTOGRAD_SCALED_ATTENTION_H_
#define ASHLAR_KERNELS_AUTOGRAD_SCALED_ATTENTION_H_

#include <cstdint>
#include <optional>

#include "kernels/tensor/framework.h"
#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

struct ScaledAttention {
  double dropout_p = 0;
  bool is_causal = false;            // as many keys as queries, and no mask
  std::optional<double> scale = {};  // nullopt: 1 / sqrt(head size)
};

enum class AttentionBackend : std::uint8_t { kFlash, kEfficient, kMath };

// FlashAttention for half and bfloat16 without a mask on Ampere and later; the memory-efficient kernel where the GPU
// has the dtype and heads are of aligned sizes; else composed operations.
AttentionBackend BackendOf(const GpuKind& gpu, DType dtype, std::int64_t head_size, bool has_mask,
                           bool can_be_efficient = true);

// query, key, value (B, H, S, D); the mask, where it is defined, bool (true: seen) or added, broadcasts to (B, H, S,
// Sk) and wants no gradient.
Tensor ScaledDotProductAttention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                                 const ScaledAttention& call);

// flash_attn_func of the package flash_attn 2: query (B, S, H, D), key and value (B, S, Hkv, D), half or bfloat16; the
// result as the query.
Tensor FlashAttention(const Tensor& query, const Tensor& key, const Tensor& value, const ScaledAttention& call);

// flash_attn_varlen_func: query (T, H, D), key and value (T, Hkv, D) of samples that `starts` (B + 1) int32 divides.
Tensor UnpaddedFlashAttention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& starts);

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_AUTOGRAD_SCALED_ATTENTION_H_
