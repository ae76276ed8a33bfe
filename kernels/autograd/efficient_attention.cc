#include <algorithm>

#include "allocator/base/check.h"
#include "kernels/autograd/fused_attention.h"
#include "kernels/autograd/node.h"
#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/reduce.h"
#include "kernels/autograd/views.h"
#include "kernels/tensor/shape.h"

namespace ashlar::kernels {
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

BackwardKernel KernelFor(const Gpu& gpu, DType dtype, std::int64_t head_size) {
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
std::int64_t WorkspaceOfEfficient(const Gpu& gpu, DType dtype, std::int64_t batch, std::int64_t heads,
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
