// What a layer of T5 saves, counted by hand from its modules, and the buckets of its positions.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "estimator/models/t5.h"
#include "kernels/autograd/engine.h"
#include "kernels/workloads/runtime.h"

namespace ashlar::kernels {
namespace {

constexpr std::uint64_t kT5Batch = 4, kT5Length = 64, kT5Width = 32, kT5Heads = 4, kHeadWidth = 16, kT5Inner = 256;
constexpr std::uint64_t kT5All = kT5Heads * kHeadWidth;  // what the heads have together

struct T5Case {
  std::int64_t encoder = 2, decoder = 2;
  std::int64_t batch = kT5Batch;
  std::optional<DType> autocast = {};
  bool is_gated = false;
  T5Head head = T5Head::kLanguage;
  bool is_checkpointed = false;
};

struct T5Live {
  std::uint64_t saved, activations, gradients, weights, peak;  // peak: of all but the weights
};

T5Live LiveOf(const T5Case& of) {
  const std::unique_ptr<Runtime> runtime =
      *Runtime::Make({.capacity_bytes = 16 * kGiB, .framework = *FrameworkOf("2.6"), .gpu = *GpuNamed("V100")});
  Context& context = runtime->context();
  T5Config config;
  config.vocab_size = 1000;
  config.d_model = kT5Width;
  config.d_kv = kHeadWidth;
  config.d_ff = kT5Inner;
  config.num_heads = kT5Heads;
  config.num_layers = of.encoder;
  config.num_decoder_layers = of.decoder;
  config.is_gated = of.is_gated;
  if (of.is_gated) config.activation = T5Config::Activation::kGeluNew;
  Parameters parameters(context);
  const T5 model(parameters, config, {.head = of.head, .is_checkpointed = of.is_checkpointed});
  const Tensor ids = Empty(context, {of.batch, kT5Length}, DType::kInt64, Part::kBatch);
  const Tensor targets = Empty(context, {of.batch, kT5Length}, DType::kInt64, Part::kBatch);
  const auto live = [&](Part part) { return context.memory().live_by_part()[static_cast<std::size_t>(part)]; };
  T5Live out{};
  Tensor loss;
  {
    const Autocast scope(context, of.autocast.has_value(), of.autocast.value_or(DType::kFloat16));
    loss = model.Loss(ids, targets);
  }
  out.saved = live(Part::kActivations);
  Backward(loss);
  loss.reset();
  out.activations = live(Part::kActivations);
  out.gradients = live(Part::kGradients);
  out.weights = live(Part::kWeights);
  out.peak = context.memory().peak_bytes() - out.weights - live(Part::kBatch);
  return out;
}

std::uint64_t SavedByAnEncoderLayer(T5Case of) {
  const std::uint64_t two = LiveOf(of).saved;
  of.encoder = 3;
  return LiveOf(of).saved - two;
}
std::uint64_t SavedByADecoderLayer(T5Case of) {
  const std::uint64_t two = LiveOf(of).saved;
  of.decoder = 3;
  return LiveOf(of).saved - two;
}

constexpr std::uint64_t kT5Tokens = kT5Batch * kT5Length, kT5Scores = kT5Batch * kT5Heads * kT5Length * kT5Length;

// A norm keeps its root's reciprocal (4 bytes a token), the product with it and its own output (8 a unit), a sum 4, a
// dropout mask 1; attention query, key, value and context (16), of a score the softmax, what dropout left and its mask
// (9); relu's output, what dropout left and its mask (9).
TEST(T5ClosedForms, LayersInFloat) {
  EXPECT_EQ(SavedByAnEncoderLayer({}), kT5Tokens * (kT5Width * 26 + 8 + kT5All * 16 + kT5Inner * 9) + kT5Scores * 9);
  EXPECT_EQ(SavedByADecoderLayer({}), kT5Tokens * (kT5Width * 39 + 12 + kT5All * 32 + kT5Inner * 9) + kT5Scores * 18);
  EXPECT_EQ(SavedByAnEncoderLayer({.batch = 1}),
            kT5Length * (kT5Width * 26 + 8 + kT5All * 16 + kT5Inner * 9) + kT5Heads * kT5Length * kT5Length * 9);
}

// The tanh gelu in Python keeps x, x / 2, the tanh and 1 + it; the product its two sides.
TEST(T5ClosedForms, AGatedLayer) {
  EXPECT_EQ(SavedByAnEncoderLayer({.is_gated = true}),
            kT5Tokens * (kT5Width * 26 + 8 + kT5All * 16 + kT5Inner * 29) + kT5Scores * 9);
}

// Norms' outputs are kept as the half copies of the products (3 x 2 and 2), not themselves; the softmax in float, what
// dropout left in half.
TEST(T5ClosedForms, ALayerInHalf) {
  const std::uint64_t weights = 2 * (4 * kT5Width * kT5All + 2 * kT5Width * kT5Inner);
  EXPECT_EQ(SavedByAnEncoderLayer({.autocast = DType::kFloat16}),
            kT5Tokens * (kT5Width * 26 + 8 + kT5All * 8 + kT5Inner * 5) + kT5Scores * 7 + weights);
}

// A checkpointed block keeps its input; masks and biases are all blocks' together, keys and values nobody's.
TEST(T5ClosedForms, ACheckpointedLayer) {
  for (const std::optional<DType> autocast : {std::optional<DType>(), std::optional(DType::kFloat16)}) {
    const T5Case of{.autocast = autocast, .is_checkpointed = true};
    EXPECT_EQ(SavedByAnEncoderLayer(of), kT5Tokens * kT5Width * 4);
    EXPECT_EQ(SavedByADecoderLayer(of), kT5Tokens * kT5Width * 4);
  }
}

// One block is computed again at a time. The decoder's first needs most: of each block behind it the gradients are
// there then, and its input is not.
TEST(T5ClosedForms, BackwardOfCheckpointedLayersNeedsOneAtATime) {
  const T5Live two = LiveOf({.is_checkpointed = true});
  const T5Live six = LiveOf({.encoder = 6, .decoder = 6, .is_checkpointed = true});
  const std::uint64_t gradients = 4 * (8 * kT5Width * kT5All + 2 * kT5Width * kT5Inner + 3 * kT5Width);
  EXPECT_EQ((six.peak - six.saved) - (two.peak - two.saved), 4 * (gradients - kT5Tokens * kT5Width * 4));
  EXPECT_LT(six.peak, LiveOf({.encoder = 6, .decoder = 6}).peak * 6 / 10);
}

TEST(T5ClosedForms, AfterBackwardOnlyGradientsAreLeft) {
  for (const T5Head head : {T5Head::kEncoder, T5Head::kNone, T5Head::kLanguage}) {
    for (const bool is_checkpointed : {false, true}) {
      const T5Live live = LiveOf({.head = head, .is_checkpointed = is_checkpointed});
      EXPECT_EQ(live.activations, 0u);
      EXPECT_EQ(live.gradients, live.weights);
    }
  }
}

// Eight exact distances on either side, then by logarithm up to 128: as the published function has it.
TEST(T5Buckets, AreAsPublished) {
  const BucketRule both{};
  for (const auto& [relative, bucket] :
       {std::pair(0, 0), std::pair(-7, 7), std::pair(-8, 8), std::pair(-12, 9), std::pair(-128, 15),
        std::pair(-5000, 15), std::pair(1, 17), std::pair(7, 23), std::pair(8, 24), std::pair(300, 31)}) {
    EXPECT_EQ(BucketOf(relative, both), bucket) << relative;
  }
  BucketRule past = both;
  past.is_bidirectional = false;
  for (const auto& [relative, bucket] : {std::pair(5, 0), std::pair(0, 0), std::pair(-15, 15), std::pair(-16, 16),
                                         std::pair(-127, 31), std::pair(-128, 31)}) {
    EXPECT_EQ(BucketOf(relative, past), bucket) << relative;
  }
}

}  // namespace
}  // namespace ashlar::kernels
