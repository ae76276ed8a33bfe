#include <algorithm>
#include <cmath>
#include <vector>

#include "allocator/base/check.h"
#include "kernels/autograd/fused_attention.h"
#include "kernels/autograd/node.h"
#include "kernels/autograd/views.h"
#include "kernels/tensor/shape.h"

namespace ashlar::kernels {
namespace {

// Of accumulators: heads are handled in steps of 32 elements, wide ones of 64.
std::int64_t RoundedHead(std::int64_t size) { return RoundUp(size, size <= 128 ? 32 : 64); }

// (B, H, S, D) as (B, S, H, D), or back: the kernel's own tensor, nobody's view.
Tensor Swapped(const Tensor& t) {
  const NoGrad no_grad(t.context());
  return Detach(Transpose(t, 1, 2));
}

ops::AttentionInputs FlashInputs(const Tensor& query, const Tensor& key, const Tensor& value,
                                 const FusedAttention& call, ops::RandomKey random) {
  ops::AttentionInputs out{query.view(), key.view(), value.view()};
  out.scale = call.scale;
  out.is_causal = call.is_causal;
  out.dropout_p = call.dropout_p;
  out.random = random;
  return out;
}

// Freed in this order.
enum FlashSaved : std::size_t {
  kFlashKey,
  kFlashQuery,
  kFlashValue,
  kFlashLogSumExp,
  kFlashOutput,
  kFlashSeed,
  kFlashOffset
};

void FlashGradient(Gradients& g, const FusedAttention& call, ops::RandomKey random) {
  const Tensor &query = g.saved[kFlashQuery], &key = g.saved[kFlashKey], &value = g.saved[kFlashValue];
  const std::int64_t batch = query.size(0), heads = query.size(1), queries = query.size(2), size = query.size(3);
  const std::int64_t key_heads = key.size(1), keys = key.size(2);
  const NoGrad no_grad(g.context);
  const Tensor grad = Contiguous(Transpose(g.grad, 1, 2));
  const Tensor out = Contiguous(Transpose(g.saved[kFlashOutput], 1, 2));
  const std::int64_t rounded = RoundUp(queries, 128);
  {
    const Tensor of_query = EmptyLike(Swapped(query)), of_key = EmptyLike(Swapped(key)),
                 of_value = EmptyLike(Swapped(value));
    Tensor sums = Empty(g.context, {batch, heads, rounded}, DType::kFloat32);
    Tensor accumulator = Empty(g.context, {batch, rounded, heads, RoundedHead(size)}, DType::kFloat32);
    Tensor wide_key, wide_value;
    if (key_heads != heads) {
      wide_key = Empty(g.context, {batch, keys, heads, size}, query.dtype());
      wide_value = Empty(g.context, {batch, keys, heads, size}, query.dtype());
    }
    g.out[0] = Swapped(of_query);
    g.out[1] = Swapped(of_key);
    g.out[2] = Swapped(of_value);
    if (g.context.computes()) {
      g.context.Do(ops::TiledAttentionBackward{FlashInputs(query, key, value, call, random), Swapped(out).view(),
                                               g.saved[kFlashLogSumExp].view(), Swapped(grad).view(), g.out[0].view(),
                                               g.out[1].view(), g.out[2].view()});
    }
    Release(wide_value, wide_key, accumulator, sums);
  }
}

// By the names that FlashAttnVarlenFunc saves.
enum SavedUnpadded : std::size_t { kUnpaddedQuery, kUnpaddedKey, kUnpaddedValue };

void UnpaddedGradient(Gradients& g, std::int64_t batch) {
  const Tensor &query = g.saved[kUnpaddedQuery], &key = g.saved[kUnpaddedKey], &value = g.saved[kUnpaddedValue];
  const std::int64_t tokens = query.size(0), heads = query.size(1), size = query.size(2);
  const std::int64_t rows = tokens + 128 * batch;  // samples are that far apart
  const NoGrad no_grad(g.context);
  g.out[0] = EmptyLike(query);
  g.out[1] = EmptyLike(key);
  g.out[2] = EmptyLike(value);
  const Tensor grad = Contiguous(g.grad);
  const Tensor sums = Empty(g.context, {heads, rows}, DType::kFloat32);
  const Tensor accumulator = Empty(g.context, {rows, heads, RoundedHead(size)}, DType::kFloat32);
  if (key.size(1) == heads) return;
  const Tensor wide_key = Empty(g.context, {tokens, heads, size}, query.dtype());
  const Tensor wide_value = EmptyLike(wide_key);
}

}  // namespace

// num_splits_heuristic: the fewest parts that keep 85 % of the best occupancy.
std::int64_t SplitsOfFlash(const Gpu& gpu, std::int64_t batch, std::int64_t heads, std::int64_t queries,
                           std::int64_t keys, std::int64_t head_size) {
  const std::int64_t key_block = head_size <= 64 ? 256 : head_size <= 128 ? 128 : 64;
  const std::int64_t key_blocks = DivideUp(keys, key_block);
  const std::int64_t work = batch * heads * DivideUp(queries, 64), slots = 2 * gpu.sm_count;
  if (static_cast<double>(work) >= 0.8 * static_cast<double>(slots)) return 1;
  const std::int64_t most = std::min({std::int64_t{128}, slots, key_blocks});
  std::vector<double> efficiency;
  double best = 0;
  for (std::int64_t splits = 1; splits <= most; ++splits) {
    const bool is_new = splits == 1 || DivideUp(key_blocks, splits) != DivideUp(key_blocks, splits - 1);
    const double waves = static_cast<double>(work * splits) / static_cast<double>(slots);
    efficiency.push_back(is_new ? waves / std::ceil(waves) : -1);
    best = std::max(best, efficiency.back());
  }
  for (std::size_t i = 0; i < efficiency.size(); ++i) {
    if (efficiency[i] >= 0.85 * best) return static_cast<std::int64_t>(i) + 1;
  }
  return 1;
}

Tensor FlashAttentionOf(const Tensor& query, const Tensor& key, const Tensor& value, const FusedAttention& call) {
  Context& context = query.context();
  const std::int64_t batch = query.size(0), heads = query.size(1), queries = query.size(2), size = query.size(3);
  ASHLAR_CHECK(size % 8 == 0 && size <= 256);
  const Tensor by_token = EmptyLike(Swapped(query));
  const Tensor log_sum_exp = Empty(context, {batch, heads, queries}, DType::kFloat32);
  Tensor split_sums, split_out;
  if (call.dropout_p == 0) {
    const std::int64_t splits = SplitsOfFlash(context.gpu(), batch, heads, queries, key.size(2), size);
    if (splits > 1) {
      split_sums = Empty(context, {splits, batch, heads, queries}, DType::kFloat32);
      split_out = Empty(context, {splits, batch, heads, queries, RoundedHead(size)}, DType::kFloat32);
    }
  }
  Tensor seed, offset;
  if (call.has_seeds) {
    seed = Empty(context, {2}, DType::kInt64);
    offset = Empty(context, {}, DType::kInt64);
    if (call.dropout_p > 0) seed = Empty(context, {2}, DType::kInt64);  // once more, for the state that is drawn
  }
  ops::RandomKey random;
  if (call.dropout_p > 0) random = context.Draw(batch * heads * queries * key.size(2));
  Tensor out = Swapped(by_token);
  if (context.computes()) {
    context.Do(ops::TiledAttention{FlashInputs(query, key, value, call, random), out.view(), log_sum_exp.view()});
  }
  Release(split_sums, split_out);
  if (Records(query, key, value)) {
    Record("FlashAttentionBackward", out, {query, key, value},
           {Detach(key), Detach(query), Detach(value), Detach(log_sum_exp), Detach(out), Keep(call.has_seeds, seed),
            Keep(call.has_seeds, offset)},
           [call, random](Gradients& g) { FlashGradient(g, call, random); });
  }
  return out;
}

Tensor UnpaddedFlashAttentionOf(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& starts) {
  Context& context = query.context();
  ASHLAR_CHECK(!context.computes());
  Tensor out = EmptyLike(query);
  const Tensor log_sum_exp = Empty(context, {query.size(1), query.size(0)}, DType::kFloat32);
  const Tensor seeds = Empty(context, {2}, DType::kInt64);
  if (Records(query, key, value)) {
    Record("FlashAttnVarlenFuncBackward", out, {query, key, value},
           {Detach(query), Detach(key), Detach(value), Detach(out), Detach(log_sum_exp), Detach(starts), Detach(seeds)},
           [batch = starts.size(0) - 1](Gradients& g) { UnpaddedGradient(g, batch); });
  }
  return out;
}

}  // namespace ashlar::kernels
