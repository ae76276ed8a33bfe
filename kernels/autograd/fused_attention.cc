#include "kernels/autograd/fused_attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "allocator/base/check.h"
#include "kernels/autograd/node.h"
#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/reduce.h"
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
std::int64_t SplitsOfFlash(const GpuKind& gpu, std::int64_t batch, std::int64_t heads, std::int64_t queries,
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

namespace {

constexpr std::int64_t kAlignedSums = 32;  // kAlignLSE: rows of the log-sum-exp
constexpr std::int64_t kNarrowHead = 128;  // above, half results are accumulated in memory

// Which backward kernel is launched (kernels/generate_kernels.py): the smallest that holds the head, with the largest
// block of queries that the GPU's shared memory takes.
struct BackwardKernel {
  std::int64_t most_head;
  std::int64_t query_block, key_block;
  bool keeps_in_registers;  // the gradients of keys and values
  bool computes_delta;
};

BackwardKernel KernelFor(const GpuKind& gpu, DType dtype, std::int64_t head_size) {
  const bool is_half = dtype != DType::kFloat32;
  BackwardKernel out{};
  out.most_head = head_size <= 32 ? 32 : head_size <= 64 ? 64 : head_size <= kNarrowHead ? 128 : 65'536;
  const bool has_wide_blocks = gpu.compute_capability >= 80 || (gpu.compute_capability == 70 && is_half);
  out.query_block = has_wide_blocks && out.most_head > 64 ? 128 : 64;
  out.keeps_in_registers = is_half && out.most_head <= out.query_block;
  const bool preloads = out.keeps_in_registers && gpu.compute_capability >= 80;
  out.key_block = preloads && out.most_head > 64 ? 128 : 64;
  out.computes_delta = is_half && (out.keeps_in_registers || gpu.compute_capability != 70);
  return out;
}

Tensor SwappedHeads(const Tensor& t) {
  const NoGrad no_grad(t.context());
  return Detach(Transpose(t, 1, 2));
}

// The log-sum-exp's rows are padded; arithmetic uses as many of its bytes as it needs.
ops::View SumsOf(const Tensor& padded, std::int64_t queries) {
  const Dims sizes = {padded.size(0), padded.size(1), queries};
  return Alias(padded, {sizes, ops::ContiguousStrides(sizes)}, 0).view();
}

ops::AttentionInputs EfficientInputs(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& bias,
                                     const FusedAttention& call, ops::RandomKey random) {
  ops::AttentionInputs out{query.view(), key.view(), value.view()};
  out.scale = call.scale;
  out.is_causal = call.is_causal;
  out.dropout_p = call.dropout_p;
  out.random = random;
  if (bias.defined()) out.bias = bias.view();
  return out;
}

// (grad * out).sum(-1) of each query, (B, H, S); a kernel of the half dtypes finds it itself.
Tensor DeltaOf(const BackwardKernel& kernel, const Tensor& grad, const Tensor& out) {
  Context& context = grad.context();
  if (kernel.computes_delta) return Empty(context, {grad.size(0), grad.size(2), grad.size(1)}, DType::kFloat32);
  // Casts, where the dtype is half, live as long as the statement.
  const bool casts = grad.dtype() != DType::kFloat32;
  Tensor wide_grad = casts ? EmptyLike(grad, DType::kFloat32) : Tensor();
  Tensor wide_out = casts ? EmptyLike(out, DType::kFloat32) : Tensor();
  Tensor product = Mul(casts ? wide_grad : grad, casts ? wide_out : out);
  Tensor sum = Sum(product, -1, /*keeps_dim=*/false);
  Tensor delta = Contiguous(Transpose(sum, -2, -1));
  Release(sum, product, wide_out, wide_grad);
  return delta;
}

// Freed in this order: inputs by name, then results.
enum EfficientSaved : std::size_t { kBias, kKey, kQuery, kValue, kLogSumExp, kOutput, kOffset, kSeed };

// Of all heads, where heads share keys: their sum over each group is the gradient.
Tensor OfAllHeads(const Tensor& key, std::int64_t heads) {
  return key.size(1) == heads ? Tensor() : EmptyOf(key, {key.size(0), key.size(2), heads, key.size(3)});
}

void EfficientGradient(Gradients& g, const FusedAttention& call, ops::RandomKey random) {
  const Tensor &query = g.saved[kQuery], &key = g.saved[kKey], &value = g.saved[kValue], &bias = g.saved[kBias];
  const std::int64_t batch = query.size(0), heads = query.size(1), queries = query.size(2), size = query.size(3);
  const NoGrad no_grad(g.context);
  const Autocast none(g.context, false, DType::kFloat16);
  const Tensor grad = Contiguous(Transpose(g.grad, 1, 2));
  g.out[0] = SwappedHeads(EmptyOf(query, SwappedHeads(query).sizes()));
  g.out[1] = SwappedHeads(EmptyOf(key, SwappedHeads(key).sizes()));
  g.out[2] = SwappedHeads(EmptyOf(value, SwappedHeads(value).sizes()));
  Tensor wide_key = OfAllHeads(key, heads), wide_value = OfAllHeads(value, heads);
  Tensor delta = DeltaOf(KernelFor(g.context.gpu(), query.dtype(), size), grad, SwappedHeads(g.saved[kOutput]));
  const std::int64_t bytes =
      WorkspaceOfEfficient(g.context.gpu(), query.dtype(), batch, heads, queries, key.size(2), size);
  Tensor workspace = Empty(g.context, {bytes}, DType::kUint8);
  if (g.context.computes()) {
    g.context.Do(ops::TiledAttentionBackward{EfficientInputs(query, key, value, bias, call, random),
                                             g.saved[kOutput].view(), SumsOf(g.saved[kLogSumExp], queries),
                                             SwappedHeads(grad).view(), g.out[0].view(), g.out[1].view(),
                                             g.out[2].view()});
  }
  Release(delta, workspace, wide_value, wide_key);
}

}  // namespace

// Params::workspace_size: a tile of the query's gradient for each block, with a lock, and half gradients of keys and
// values that registers do not hold.
std::int64_t WorkspaceOfEfficient(const GpuKind& gpu, DType dtype, std::int64_t batch, std::int64_t heads,
                                  std::int64_t queries, std::int64_t keys, std::int64_t head_size) {
  constexpr std::int64_t kLock = 4;  // words of 4 bytes
  const BackwardKernel kernel = KernelFor(gpu, dtype, head_size);
  const std::int64_t columns = kernel.key_block;  // MatmulGradQ: GemmShape<kBlockSizeI, kBlockSizeJ, ..>
  std::int64_t words =
      DivideUp(queries, kernel.query_block) * DivideUp(head_size, columns) * (kernel.query_block * columns + kLock);
  if (dtype != DType::kFloat32 && !kernel.keeps_in_registers) {
    std::int64_t splits = DivideUp(keys, kernel.key_block);
    if (batch * heads >= 256 && keys <= 2 * kernel.key_block) splits = 1;
    splits = std::max<std::int64_t>(1, std::min(splits, 200 / (batch * heads)));
    words += 2 * splits * kernel.key_block * RoundUp(head_size, kernel.query_block);
  }
  return batch * heads * RoundUp(words, 4) * 4;
}

Tensor EfficientAttentionOf(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& bias,
                            const FusedAttention& call) {
  Context& context = query.context();
  const bool records = Records(query, key, value);
  const std::int64_t batch = query.size(0), heads = query.size(1), queries = query.size(2), size = query.size(3);
  ASHLAR_CHECK(key.size(1) == heads || context.framework().efficient_shares_keys);
  Tensor seed, offset;
  if (context.framework().efficient_has_seeds && call.dropout_p == 0) {
    seed = Empty(context, {}, DType::kInt64);
    offset = Empty(context, {}, DType::kInt64);
  }
  const Tensor by_token = EmptyOf(query, {batch, queries, heads, value.size(3)});
  // Without a backward pass nobody asks for the sums: no bytes.
  const std::int64_t rows = records ? RoundUp(queries, kAlignedSums) : 0;
  const Tensor log_sum_exp = Empty(context, {batch, heads, rows}, DType::kFloat32);
  Tensor accumulator;
  if (query.dtype() != DType::kFloat32 && size > kNarrowHead) {
    accumulator = Empty(context, by_token.sizes(), DType::kFloat32);
  }
  ops::RandomKey random;
  if (call.dropout_p > 0) random = context.Draw(batch * heads * queries * key.size(2));
  Tensor out = SwappedHeads(by_token);
  if (context.computes()) {
    ops::View sums = SumsOf(log_sum_exp, queries);
    if (!records) sums.data = nullptr;
    context.Do(ops::TiledAttention{EfficientInputs(query, key, value, bias, call, random), out.view(), sums});
  }
  accumulator.reset();
  if (records) {
    Record("EfficientAttentionBackward", out, {query, key, value},
           {Keep(bias.defined(), bias), Detach(key), Detach(query), Detach(value), Detach(log_sum_exp), Detach(out),
            Keep(offset.defined(), offset), Keep(seed.defined(), seed)},
           [call, random](Gradients& g) { EfficientGradient(g, call, random); });
  }
  return out;
}

}  // namespace ashlar::kernels
