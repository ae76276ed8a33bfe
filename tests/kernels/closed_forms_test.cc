// Bytes computed by hand: what a layer of BERT saves, and what each switch between versions of PyTorch changes.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "estimator/models/bert.h"
#include "kernels/autograd/engine.h"
#include "kernels/autograd/matmul.h"
#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/reduce.h"
#include "kernels/optim/optimizer.h"
#include "kernels/workloads/runtime.h"
#include "kernels/workloads/training.h"
#include "tests/kernels/step_recorder.h"

namespace ashlar::kernels {
namespace {

std::unique_ptr<Runtime> RuntimeOf(const Framework& framework) {
  return *Runtime::Make({.capacity_bytes = 16 * kGiB, .framework = framework, .gpu = *GpuNamed("V100")});
}
Framework Torch(const char* version) { return *FrameworkOf(version); }

constexpr std::uint64_t kClosedFormsSequences = 4, kClosedFormsLength = 128, kClosedFormsWidth = 64,
                        kClosedFormsInner = 256, kClosedFormsHeads = 4;
constexpr std::uint64_t kClosedFormsTokens = kClosedFormsSequences * kClosedFormsLength,
                        kClosedFormsScores =
                            kClosedFormsSequences * kClosedFormsHeads * kClosedFormsLength * kClosedFormsLength;

// Bytes that live after a forward pass, but for weights and batch: what the graph saves.
std::uint64_t SavedBytes(const Framework& framework, std::int64_t layers, std::optional<DType> autocast = {},
                         DType weights = DType::kFloat32) {
  const std::unique_ptr<Runtime> runtime = RuntimeOf(framework);
  Context& context = runtime->context();
  BertConfig config;
  config.hidden_size = kClosedFormsWidth;
  config.intermediate_size = kClosedFormsInner;
  config.num_attention_heads = kClosedFormsHeads;
  config.num_hidden_layers = layers;
  Parameters parameters(context, {.dtype = weights});
  const BertClassifier model(parameters, config, 2, {});
  Tensor loss;
  {
    const Autocast scope(context, autocast.has_value(), autocast.value_or(DType::kFloat16));
    loss = model.Loss(Empty(context, {kClosedFormsSequences, kClosedFormsLength}, DType::kInt64, Part::kBatch),
                      Empty(context, {kClosedFormsSequences}, DType::kInt64, Part::kBatch));
  }
  return context.memory().live_by_part()[static_cast<std::size_t>(Part::kActivations)];
}

std::uint64_t SavedByALayer(const Framework& framework, std::optional<DType> autocast = {}) {
  return SavedBytes(framework, 3, autocast) - SavedBytes(framework, 2, autocast);
}

// Of two norms a layer: mean and reciprocal deviation of each token, float.
constexpr std::uint64_t kNormStatistics = 2 * 2 * 4 * kClosedFormsTokens;

TEST(ClosedForms, ABertLayerInFloat) {
  EXPECT_EQ(SavedByALayer(Torch("1.10")), kClosedFormsTokens * kClosedFormsWidth * 34 +
                                              kClosedFormsTokens * kClosedFormsInner * 8 + kClosedFormsScores * 13 +
                                              kNormStatistics);
  EXPECT_EQ(SavedByALayer(Torch("1.11")), kClosedFormsTokens * kClosedFormsWidth * 34 +
                                              kClosedFormsTokens * kClosedFormsInner * 8 + kClosedFormsScores * 9 +
                                              kNormStatistics);
}

TEST(ClosedForms, ABertLayerInHalf) {
  const std::uint64_t half_weights =
      (4 * kClosedFormsWidth * kClosedFormsWidth + 2 * kClosedFormsWidth * kClosedFormsInner) * 2;
  EXPECT_EQ(SavedByALayer(Torch("1.10"), DType::kFloat16),
            kClosedFormsTokens * kClosedFormsWidth * 26 + kClosedFormsTokens * kClosedFormsInner * 6 +
                kClosedFormsScores * 11 + kNormStatistics + half_weights);
}

// All in half but the masks and the norms' statistics.
TEST(ClosedForms, ABertLayerInPureHalf) {
  const auto saved = [](std::int64_t layers) { return SavedBytes(Torch("2.6"), layers, {}, DType::kFloat16); };
  EXPECT_EQ(saved(3) - saved(2), kClosedFormsTokens * kClosedFormsWidth * 18 +
                                     kClosedFormsTokens * kClosedFormsInner * 4 + kClosedFormsScores * 5 +
                                     kNormStatistics);
}

TEST(Switches, GeluInHalfSavesTwoBytesLessAnInnerElement) {
  Framework before = Torch("1.10"), after = before;
  after.gelu_autocasts_to_float = false;
  EXPECT_EQ(SavedByALayer(before, DType::kFloat16) - SavedByALayer(after, DType::kFloat16),
            2 * kClosedFormsTokens * kClosedFormsInner);
}

TEST(Switches, TheBiasIsAddedWithoutMemoryEitherWay) {
  Framework before = Torch("1.10"), after = before;
  after.linear_adds_bias_after = false;
  EXPECT_EQ(SavedBytes(before, 2), SavedBytes(after, 2));
}

TEST(Switches, KeptGradientsAreTheWeights) {
  const auto live = [](bool keeps) {
    Framework framework = Torch("1.13");
    framework.zero_grad_keeps_gradients = keeps;
    const std::unique_ptr<Runtime> runtime = RuntimeOf(framework);
    Context& context = runtime->context();
    Parameters parameters(context);
    const Tensor weight = parameters.New("weight", {1000, 100}, Init::Zero());
    Training training(parameters, {.optimizer = "sgd"});
    EXPECT_TRUE(training.Run(1, [&] { return MeanOfAll(Square(weight)); }).ok());
    return context.memory().live_by_part()[static_cast<std::size_t>(Part::kGradients)];
  };
  EXPECT_EQ(live(true), 1000u * 100 * 4);
  EXPECT_EQ(live(false), 0u);
}

// Two gradients meet at x: 2 x + 3 x.
TEST(Switches, MeetingGradientsTakeATensorMoreUnlessAddedInPlace) {
  const auto allocations = [](bool in_place) {
    Framework framework = Torch("2.6");
    framework.gradients_add_in_place = in_place;
    const std::unique_ptr<Runtime> runtime = RuntimeOf(framework);
    Tensor x = Empty(runtime->context(), {500}, DType::kFloat32);
    x.set_requires_grad(true);
    const Tensor y = MulScalar(x, 1);
    Tensor loss = MeanOfAll(Add(MulScalar(y, 2), MulScalar(y, 3)));
    StepEvents events;
    runtime->allocator().SetSink(&events);
    Backward(loss);
    runtime->allocator().SetSink(nullptr);
    std::size_t count = 0;
    for (const StepEvent& event : events.list()) count += !event.is_free && event.size_bytes == 2000;
    return count;
  };
  EXPECT_EQ(allocations(false), allocations(true) + 1);
}

TEST(Switches, TwoThreadsOfProductsTakeTwoWorkspaces) {
  const auto libraries = [](bool in_allocator) {
    Framework framework = Torch("2.6");
    framework.has_cublas_workspace = in_allocator;
    const std::unique_ptr<Runtime> runtime = RuntimeOf(framework);
    Tensor x = Empty(runtime->context(), {64, 64}, DType::kFloat32);
    x.set_requires_grad(true);
    Backward(MeanOfAll(Mm(x, x)));
    return runtime->context().memory().live_by_part()[static_cast<std::size_t>(Part::kLibraries)];
  };
  EXPECT_EQ(libraries(true), 2u * 8'519'680);
  EXPECT_EQ(libraries(false), 0u);
}

TEST(Switches, ForeachTakesItsListsOfTemporaries) {
  constexpr std::uint64_t kBytes = (300 * 200 + 70 * 10) * 4;
  const auto peak = [](const char* optimizer, int lists) {
    Framework framework = Torch("2.6");
    framework.foreach_adamw_lists = lists;
    const std::unique_ptr<Runtime> runtime = RuntimeOf(framework);
    Context& context = runtime->context();
    Parameters parameters(context);
    const Dims sizes[] = {{300, 200}, {70, 10}};
    for (const Dims& size : sizes) {
      Tensor parameter = parameters.New("p", size, Init::Zero());
      parameter.set_grad(Empty(context, size, DType::kFloat32, Part::kGradients));
    }
    const std::unique_ptr<Optimizer> made = *MakeOptimizer(optimizer, parameters, {});
    made->Step();
    context.memory().ResetPeak();
    const std::uint64_t before = context.memory().live_bytes();
    made->Step();
    return context.memory().peak_bytes() - before;
  };
  EXPECT_EQ(peak("adamw-foreach", 1), kBytes);
  EXPECT_EQ(peak("adamw-foreach", 2), 2 * kBytes);
  EXPECT_EQ(peak("adamw-fused", 1), 0u);
  EXPECT_EQ(peak("adamw-loop", 1), 2u * 300 * 200 * 4);        // root and quotient
  EXPECT_EQ(peak("adamw-hf", 1), (300u * 200 + 70 * 10) * 4);  // the last root is held while the next is made
}

// Without gradients they are, as where a segment will be computed again; in inference mode it depends.
TEST(Switches, CastWeightsAreKeptWithoutGradientsToo) {
  const auto live = [](bool caches, bool is_inference) {
    Framework framework = Torch("2.6");
    framework.caches_casts_in_inference_mode = caches;
    framework.has_cublas_workspace = false;
    const std::unique_ptr<Runtime> runtime = RuntimeOf(framework);
    Context& context = runtime->context();
    Tensor weight = Empty(context, {96, 64}, DType::kFloat32, Part::kWeights);
    weight.set_requires_grad(true);
    const NoGrad no_grad(context);
    const InferenceMode mode(context, is_inference);
    const Autocast autocast(context, true, DType::kBFloat16);
    (void)Linear(Empty(context, {8, 64}, DType::kFloat32), weight, {});
    return context.memory().live_by_part()[static_cast<std::size_t>(Part::kActivations)];
  };
  EXPECT_EQ(live(true, true), 96u * 64 * 2);
  EXPECT_EQ(live(false, true), 0u);
  EXPECT_EQ(live(false, false), 96u * 64 * 2);
}

// Heads that were permuted are copied for the product only when there is more than one sequence.
TEST(ClosedForms, OneSequenceNeedsNoCopies) {
  const auto allocations = [](std::int64_t sequences, std::int64_t layers) {
    const std::unique_ptr<Runtime> runtime = RuntimeOf(Torch("1.10"));
    Context& context = runtime->context();
    BertConfig config;
    config.hidden_size = kClosedFormsWidth;
    config.intermediate_size = kClosedFormsInner;
    config.num_attention_heads = kClosedFormsHeads;
    config.num_hidden_layers = layers;
    Parameters parameters(context);
    const BertClassifier model(parameters, config, 2, {});
    StepEvents events;
    runtime->allocator().SetSink(&events);
    const Tensor loss = model.Loss(Empty(context, {sequences, kClosedFormsLength}, DType::kInt64, Part::kBatch),
                                   Empty(context, {sequences}, DType::kInt64, Part::kBatch));
    runtime->allocator().SetSink(nullptr);
    std::int64_t count = 0;
    for (const StepEvent& event : events.list()) count += event.is_free ? 0 : 1;
    return count;
  };
  const auto of_a_layer = [&](std::int64_t sequences) { return allocations(sequences, 3) - allocations(sequences, 2); };
  EXPECT_EQ(of_a_layer(2), of_a_layer(1) + 3);  // query, key, value
}

// Blocks that share the work of a column sum, for GPUs of the table of PyTorch's Reduce.cuh.
TEST(ReductionScratch, IsAsComputedByHand) {
  const auto bytes = [](const char* gpu, std::int64_t rows, std::int64_t columns) {
    const Layout in{{rows, columns}, {columns, 1}};
    return ScratchOfReduction(*GpuNamed(gpu), in, {1, columns}).partial_bytes / kMiB;
  };
  for (const char* gpu : {"V100", "T4", "A100", "H100"}) {
    EXPECT_EQ(bytes(gpu, 512, 1024), 0u) << gpu;
    EXPECT_EQ(bytes(gpu, 1024, 1024), 8u) << gpu;
    EXPECT_EQ(bytes(gpu, 2048, 1024), 16u) << gpu;
  }
  EXPECT_EQ(bytes("V100", 4096, 4096), 80u);
  EXPECT_EQ(bytes("T4", 4096, 4096), 20u);
  EXPECT_EQ(bytes("A100", 4096, 4096), 108u);
  EXPECT_EQ(bytes("H100", 4096, 4096), 128u);
  EXPECT_EQ(bytes("H100", 8192, 4096), 132u);
}

}  // namespace
}  // namespace ashlar::kernels
