// The two fused kernels behind scaled dot-product attention, each a node of the graph: what they save, the buffers of
// their forward and backward kernels, and the layouts of their outputs.
//
// FlashAttention: aten/native/transformers/cuda/flash_attn/flash_api.cpp (mha_fwd, mha_bwd) of PyTorch 2.6 and 2.7; the
// package flash_attn 2.x has the same buffers. Memory-efficient: cuda/attention.cu, attention_backward.cu and
// mem_eff_attention/kernel_{forward,backward}.h of PyTorch 2.6.
#ifndef ASHLAR_KERNELS_AUTOGRAD_FUSED_ATTENTION_H_
#define ASHLAR_KERNELS_AUTOGRAD_FUSED_ATTENTION_H_

#include <cstdint>

#include "kernels/tensor/framework.h"
#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

struct FusedAttention {
  double scale = 1;
  double dropout_p = 0;
  bool is_causal = false;
  bool has_seeds = false;  // on the device, saved with the rest
};

// query (B, H, S, D), key and value (B, Hkv, Sk, D), half or bfloat16, D a multiple of 8 and at most 256; the result is
// laid out as the query. Fewer key heads than query heads are expanded in backward.
Tensor FlashAttentionOf(const Tensor& query, const Tensor& key, const Tensor& value, const FusedAttention& call);

// The same over samples without padding, one behind the other (mha_varlen_fwd and mha_varlen_bwd of the package
// flash_attn 2.6 and later): query (T, H, D), key and value (T, Hkv, D), the result as the query; `starts` (B + 1)
// int32. In dry runs alone.
Tensor UnpaddedFlashAttentionOf(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& starts);

// query, key, value (B, H, S, D); the result is (B, S, H, D) in memory. A bias, of the query's dtype and without a
// gradient, has the sizes of the scores, its strides multiples of 8 but the last.
Tensor EfficientAttentionOf(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& bias,
                            const FusedAttention& call);

// Parts into which FlashAttention splits the keys of a forward pass without dropout, each with an accumulator of its
// own, so that few queries still fill the GPU; 1 where they do.
std::int64_t SplitsOfFlash(const GpuKind& gpu, std::int64_t batch, std::int64_t heads, std::int64_t queries,
                           std::int64_t keys, std::int64_t head_size);

// What the memory-efficient backward kernel accumulates in, bytes.
std::int64_t WorkspaceOfEfficient(const GpuKind& gpu, DType dtype, std::int64_t batch, std::int64_t heads,
                                  std::int64_t queries, std::int64_t keys, std::int64_t head_size);

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_AUTOGRAD_FUSED_ATTENTION_H_
