// Scaled dot-product attention: each backend's numbers and gradients against the composed operations, and its bytes
// against those counted by hand from PyTorch's sources.
#include "kernels/autograd/scaled_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "estimator/models/attention.h"
#include "kernels/autograd/engine.h"
#include "kernels/autograd/fused_attention.h"
#include "kernels/autograd/matmul.h"
#include "kernels/autograd/normalize.h"
#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/reduce.h"
#include "kernels/autograd/views.h"
#include "kernels/nn/parameters.h"
#include "kernels/workloads/runtime.h"
#include "tests/kernels/step_recorder.h"

namespace ashlar::kernels {
namespace {

std::unique_ptr<Runtime> ScaledAttentionMakeRuntime(DeviceKind kind, const char* torch = "2.6",
                                                    const char* gpu = "A100") {
  return *Runtime::Make({.kind = kind,
                         .capacity_bytes = kind == DeviceKind::kSim ? 16 * kGiB : 256 * kMiB,
                         .framework = *FrameworkOf(torch),
                         .gpu = *GpuNamed(gpu)});
}

Tensor Leaf(Context& context, const Dims& sizes, DType dtype = DType::kFloat32) {
  Tensor out = Empty(context, sizes, DType::kFloat32, Part::kBatch);
  if (context.computes()) FillNormal(out, 0, 1);
  if (dtype != DType::kFloat32) out = Cast(out, dtype);
  out.set_requires_grad(true);
  return out;
}

std::vector<float> Numbers(const Tensor& tensor) {
  const Tensor plain = Contiguous(Cast(Detach(tensor), DType::kFloat32));
  std::vector<float> out(static_cast<std::size_t>(plain.elements()));
  std::memcpy(out.data(), plain.view().data, out.size() * sizeof(float));
  return out;
}

enum class MaskKind { kNone, kCausal, kBool, kBias };

Tensor MaskOf(Context& context, MaskKind kind, std::int64_t queries, std::int64_t keys) {
  if (kind == MaskKind::kBias) {
    Tensor out = Empty(context, {1, 1, queries, keys}, DType::kFloat32);
    FillNormal(out, 0, 1);
    return out;
  }
  if (kind != MaskKind::kBool) return {};
  Tensor out = Empty(context, {1, 1, queries, keys}, DType::kBool);
  std::vector<std::uint8_t> sees(static_cast<std::size_t>(queries * keys));
  for (std::size_t i = 0; i < sees.size(); ++i) sees[i] = i % 3 != 1;
  context.CopyBytes(out.view().data, sees.data(), sees.size());
  return out;
}

// All scores, masked by what is added to them.
Tensor Reference(const Tensor& q, const Tensor& k, const Tensor& v, MaskKind kind, const Tensor& mask) {
  Context& context = q.context();
  Tensor scores = DivScalar(Matmul(q, Transpose(k, -1, -2)), std::sqrt(static_cast<double>(q.size(-1))));
  if (kind == MaskKind::kBias) scores = Add(scores, mask);
  if (kind == MaskKind::kBool) scores = WhereOrValue(mask, scores, -std::numeric_limits<float>::infinity());
  if (kind == MaskKind::kCausal) {
    const Tensor ids = Empty(context, {q.size(2)}, DType::kInt64);
    context.Do(ops::Arange{ids.view(), 0, 1});
    const Tensor sees = Compare(ops::CompareKind::kGreaterEqual, View(ids, {1, 1, -1, 1}), View(ids, {1, 1, 1, -1}));
    scores = WhereOrValue(sees, scores, -std::numeric_limits<float>::infinity());
  }
  return Matmul(Softmax(scores), v);
}

struct ScaledAttentionCase {
  DType dtype;
  std::int64_t head_size;
  AttentionBackend backend;
  std::vector<MaskKind> masks;
};

TEST(ScaledAttention, NumbersAndGradientsAreThoseOfTheComposedOperations) {
  using enum MaskKind;
  const ScaledAttentionCase cases[] = {
      {DType::kFloat32, 8, AttentionBackend::kEfficient, {kNone, kCausal, kBool, kBias}},
      {DType::kFloat32, 6, AttentionBackend::kMath, {kNone, kCausal, kBool, kBias}},
      {DType::kBFloat16, 16, AttentionBackend::kFlash, {kNone, kCausal}},
      {DType::kBFloat16, 12, AttentionBackend::kFlash, {kCausal}},  // padded to 16
      {DType::kBFloat16, 16, AttentionBackend::kEfficient, {kBool, kBias}}};
  for (const char* torch : {"2.4", "2.6"}) {
    for (const ScaledAttentionCase& c : cases) {
      for (const MaskKind kind : c.masks) {
        SCOPED_TRACE(testing::Message() << torch << " head " << c.head_size << " mask " << static_cast<int>(kind));
        const std::unique_ptr<Runtime> runtime = ScaledAttentionMakeRuntime(DeviceKind::kHost, torch);
        Context& context = runtime->context();
        const bool has_mask = kind == kBool || kind == kBias;
        ASSERT_EQ(BackendOf(context.gpu(), c.dtype, c.head_size, has_mask), c.backend);
        constexpr std::int64_t kQueries = 10;
        const Dims sizes = {2, kQueries, 3, c.head_size};  // as a projection leaves them
        std::vector<Tensor> leaves;
        for (int i = 0; i < 3; ++i) leaves.push_back(Leaf(context, sizes, c.dtype));
        const Tensor mask = MaskOf(context, kind, kQueries, kQueries);
        std::vector<std::vector<float>> results[2];
        for (const bool is_reference : {false, true}) {
          std::vector<Tensor> by_head;
          for (const Tensor& leaf : leaves) by_head.push_back(Transpose(leaf, 1, 2));
          if (is_reference) {
            for (Tensor& t : by_head) t = Cast(t, DType::kFloat32);
          }
          const Tensor out =
              is_reference ? Reference(by_head[0], by_head[1], by_head[2], kind, mask)
                           : ScaledDotProductAttention(
                                 by_head[0], by_head[1], by_head[2],
                                 has_mask && c.dtype != DType::kFloat32 && kind == kBias ? Cast(mask, c.dtype) : mask,
                                 {.is_causal = kind == kCausal});
          results[is_reference].push_back(Numbers(out));
          Backward(MeanOfAll(Square(Cast(out, DType::kFloat32))));
          for (Tensor& leaf : leaves) {
            results[is_reference].push_back(Numbers(leaf.grad()));
            leaf.set_grad({});
          }
        }
        ASSERT_TRUE(context.memory().ok()) << context.memory().status();
        const double exact = c.dtype == DType::kFloat32 ? 2e-6 : 0.02;
        for (std::size_t which = 0; which < results[0].size(); ++which) {
          double largest = 0;
          for (const float x : results[1][which]) largest = std::max(largest, std::abs(static_cast<double>(x)));
          for (std::size_t i = 0; i < results[0][which].size(); ++i) {
            ASSERT_NEAR(results[0][which][i], results[1][which][i], exact * std::max(largest, 1e-3))
                << which << " " << i;
          }
        }
      }
    }
  }
}

// What lives beside the operands after a forward pass, and the most that lives beyond it in the backward.
struct Bytes {
  std::uint64_t saved = 0;
  std::uint64_t backward = 0;
};

Bytes BytesOf(TensorMemory& memory, const std::function<Tensor()>& attend) {
  const std::uint64_t before = memory.live_bytes();
  Bytes out;
  const Tensor result = attend();
  out.saved = memory.live_bytes() - before;
  Tensor grad = EmptyLike(result);
  memory.ResetPeak();
  const std::uint64_t with_grad = memory.live_bytes();
  Backward(result, std::move(grad));
  out.backward = memory.peak_bytes() - with_grad;
  return out;
}

Bytes BytesOf(const char* torch, const char* gpu, DType dtype, const Dims& by_token, std::int64_t key_heads = 0) {
  const std::unique_ptr<Runtime> runtime = ScaledAttentionMakeRuntime(DeviceKind::kSim, torch, gpu);
  Context& context = runtime->context();
  Dims of_keys = by_token;
  if (key_heads != 0) of_keys[2] = key_heads;
  const Tensor q = Leaf(context, by_token, dtype), k = Leaf(context, of_keys, dtype), v = Leaf(context, of_keys, dtype);
  const auto by_head = [](const Tensor& t) { return Transpose(t, 1, 2); };
  return BytesOf(context.memory(), [&] {
    return ScaledDotProductAttention(by_head(q), by_head(k), by_head(v), {}, {.is_causal = true});
  });
}

constexpr std::int64_t kB = 2, kS = 200, kH = 16, kD = 64;
constexpr std::uint64_t kQueryElements = kB * kS * kH * kD, kQueryRows = kB * kS * kH;

TEST(ScaledAttention, FlashSavesOutputAndSums) {
  const Bytes bytes = BytesOf("2.6", "A100", DType::kBFloat16, {kB, kS, kH, kD});
  EXPECT_EQ(bytes.saved, 2 * kQueryElements + 4 * kQueryRows);
  // Three gradients; for 256 rows a sum and an accumulator of the query's gradient.
  constexpr std::uint64_t kRounded = kB * kH * 256;
  EXPECT_EQ(bytes.backward, 3 * 2 * kQueryElements + 4 * kRounded + 4 * kRounded * kD);
  EXPECT_EQ(BytesOf("2.7", "A100", DType::kBFloat16, {kB, kS, kH, kD}).saved, bytes.saved + 16 + 8);
}

TEST(ScaledAttention, FlashExpandsTheGradientsOfSharedKeys) {
  const Bytes bytes = BytesOf("2.6", "A100", DType::kBFloat16, {kB, kS, kH, kD}, 4);
  constexpr std::uint64_t kRounded = kB * kH * 256;
  EXPECT_EQ(bytes.backward,
            2 * kQueryElements + 2 * 2 * kQueryElements / 4 + 4 * kRounded + 4 * kRounded * kD + 4 * kQueryElements);
}

TEST(ScaledAttention, FlashPadsHeads) {
  // Each operand padded from 60 to 64 is saved beside it; the result is cut out by a view.
  const Bytes bytes = BytesOf("2.6", "A100", DType::kBFloat16, {kB, kS, kH, 60});
  EXPECT_EQ(bytes.saved, 3 * 2 * kQueryElements + 2 * kQueryElements + 4 * kQueryRows);
}

// The package's kernel over T real tokens of a padded batch.
Bytes BytesOfUnpadded(std::int64_t tokens, std::int64_t key_heads) {
  const std::unique_ptr<Runtime> runtime = ScaledAttentionMakeRuntime(DeviceKind::kSim);
  Context& context = runtime->context();
  const Dims of_keys = {kB, kS, key_heads, kD};
  const Tensor q = Leaf(context, {kB, kS, kH, kD}, DType::kBFloat16), k = Leaf(context, of_keys, DType::kBFloat16),
               v = Leaf(context, of_keys, DType::kBFloat16);
  const Tensor mask = Empty(context, {kB, kS}, DType::kInt64);
  TensorMemory& memory = context.memory();
  const std::uint64_t before = memory.live_bytes();
  const Bytes out = BytesOf(memory, [&] { return FlashForward(q, k, v, {mask, tokens}, {.is_causal = true}); });
  EXPECT_EQ(memory.live_bytes() - before, 2u * kB * kS * kD * (kH + 2 * key_heads));  // the gradients
  return out;
}

TEST(ScaledAttention, UnpaddedFlashKeepsAndComputesRealTokensAlone) {
  constexpr std::uint64_t kTokens = 300;
  const Bytes bytes = BytesOfUnpadded(kTokens, kH);
  // The result has its padding back. Query, key, value, output; sums; where tokens are and samples start; a seed.
  constexpr std::uint64_t kSaved = 2 * kQueryElements + 4 * kTokens * kH + 8 * kTokens + 4 * (kB + 1) + 16;
  EXPECT_EQ(bytes.saved, kSaved + 4 * 2 * kTokens * kH * kD);
  // Four gradients: of the output, query, key, value. Of 128 rows more a sample a sum and an accumulator. The whole
  // batch's gradient has ended before.
  constexpr std::uint64_t kScratch = 4 * (kTokens + 128 * kB) * kH * (1 + kD);
  EXPECT_EQ(bytes.backward + 2 * kQueryElements, 4 * 2 * kTokens * kH * kD + kScratch);
  // Shared keys and values: four heads of each are kept, and the gradients of all heads before they are summed.
  const Bytes shared = BytesOfUnpadded(kTokens, 4);
  EXPECT_EQ(shared.saved, kSaved + 2 * kTokens * kD * (2 * kH + 2 * 4));
  EXPECT_EQ(shared.backward + 2 * kQueryElements,
            2 * kTokens * kD * (2 * kH + 2 * 4) + kScratch + 2 * 2 * kTokens * kH * kD);
}

TEST(ScaledAttention, EfficientPadsSumsAndMultipliesForDelta) {
  const Bytes bytes = BytesOf("2.6", "A100", DType::kFloat32, {kB, kS, kH, kD});
  EXPECT_EQ(bytes.saved, 4 * kQueryElements + 4 * kB * kH * 224);
  // From 2.14 on two seeds that nobody reads without dropout.
  EXPECT_EQ(BytesOf("2.14", "A100", DType::kFloat32, {kB, kS, kH, kD}).saved, bytes.saved + 2 * 8);
  // Three gradients, the sums of grad * out, and of a head four blocks of 64 x 64 and a lock of 16 bytes: more than
  // the product itself, which was there before.
  constexpr std::uint64_t kWorkspace = kB * kH * 4 * (64 * 64 * 4 + 16);
  EXPECT_EQ(bytes.backward, 3 * 4 * kQueryElements + 4 * kQueryRows + kWorkspace);
  // A head of 100 takes blocks of 128 x 64, two times eight for 1000 queries.
  const Bytes narrow = BytesOf("2.6", "A100", DType::kFloat32, {1, 1000, 1, 100});
  EXPECT_EQ(narrow.saved, 4u * 1000 * 100 + 4 * 1024);
  EXPECT_EQ(narrow.backward, 3u * 4 * 1000 * 100 + 4 * 1000 + 2 * 8 * (128 * 64 * 4 + 16));
  // On a V100 in half the kernel sums for itself.
  const Bytes half = BytesOf("2.6", "V100", DType::kFloat16, {kB, kS, kH, kD});
  EXPECT_EQ(half.saved, 2 * kQueryElements + 4 * kB * kH * 224);
  EXPECT_EQ(half.backward, 3 * 2 * kQueryElements + 4 * kQueryRows + kWorkspace);
}

TEST(ScaledAttention, SplitsOfFlashFillTheGpu) {
  const GpuKind a100 = *GpuNamed("A100");
  EXPECT_EQ(SplitsOfFlash(a100, 8, 12, 512, 512, 64), 1);  // 768 blocks for 216 slots
  EXPECT_EQ(SplitsOfFlash(a100, 1, 12, 512, 512, 64), 2);  // 96 blocks: 2 x 96 of 216; keys have two blocks of 256
  EXPECT_EQ(SplitsOfFlash(a100, 1, 1, 64, 128, 128), 1);   // one block of keys
}

TEST(ScaledAttention, BackendsAreChosenAsPyTorchDoes) {
  const auto of = [](const char* gpu, DType dtype, std::int64_t head, bool has_mask) {
    return BackendOf(*GpuNamed(gpu), dtype, head, has_mask);
  };
  EXPECT_EQ(of("A100", DType::kFloat16, 128, false), AttentionBackend::kFlash);
  EXPECT_EQ(of("A100", DType::kFloat16, 128, true), AttentionBackend::kEfficient);
  EXPECT_EQ(of("A100", DType::kFloat16, 257, false), AttentionBackend::kMath);
  EXPECT_EQ(of("A100", DType::kFloat32, 128, false), AttentionBackend::kEfficient);
  EXPECT_EQ(of("T4", DType::kFloat16, 64, false), AttentionBackend::kEfficient);
  EXPECT_EQ(of("T4", DType::kBFloat16, 64, false), AttentionBackend::kMath);
}

}  // namespace
}  // namespace ashlar::kernels
