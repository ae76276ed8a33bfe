// Which releases are known, and what those changed that the real program was held to: each counted by hand.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "estimator/models/attention.h"
#include "estimator/models/transformers.h"
#include "kernels/autograd/engine.h"
#include "kernels/autograd/matmul.h"
#include "kernels/autograd/normalize.h"
#include "kernels/autograd/scaled_attention.h"
#include "kernels/autograd/views.h"
#include "kernels/optim/optimizer.h"
#include "kernels/workloads/runtime.h"
#include "tests/kernels/step_recorder.h"
#include "tests/kernels/switch_lab.h"

namespace ashlar::kernels {
namespace {

TEST(Switches, ABiasTakesAMebibyteForTheCallOrKeepsIt) {
  const auto linear = [](LtWorkspace workspace) {
    Lab lab(&Framework::lt_workspace, workspace);
    const Tensor x = lab.Leaf({50, 30}), weight = lab.Leaf({20, 30}), bias = lab.Leaf({20});
    Tensor out;
    const std::uint64_t peak = lab.PeakOf([&] { out = Linear(x, weight, bias); });
    return std::pair(peak, lab.PeakOf([&] { out = Linear(x, weight, {}); }));
  };
  constexpr std::uint64_t kOut = 50 * 20 * 4;
  EXPECT_EQ(linear(LtWorkspace::kOfCall), std::pair(kOut + kMiB, kOut));
  EXPECT_EQ(linear(LtWorkspace::kNone), std::pair(kOut, kOut));
  EXPECT_EQ(linear(LtWorkspace::kOfCublas), std::pair(kOut, kOut));
  Lab lab(&Framework::lt_workspace, LtWorkspace::kKept);
  const Tensor x = lab.Leaf({50, 30}), weight = lab.Leaf({20, 30}), bias = lab.Leaf({20});
  EXPECT_EQ(lab.KeptBy([&] { return Linear(x, weight, bias); }), kOut + kMiB);
  EXPECT_EQ(lab.KeptBy([&] { return Linear(x, weight, bias); }), kOut);
}

TEST(Switches, CublasLtsWorkspaceOfEachRelease) {
  for (const auto& [torch, workspace] :
       {std::pair("1.12", LtWorkspace::kNone), std::pair("1.13", LtWorkspace::kOfCall),
        std::pair("2.8.0", LtWorkspace::kOfCall), std::pair("2.9", LtWorkspace::kKept),
        std::pair("2.11", LtWorkspace::kOfCublas), std::pair("2.14.1", LtWorkspace::kOfCublas),
        std::pair("2.15", LtWorkspace::kOfCall)}) {
    EXPECT_EQ(FrameworkOf(torch)->lt_workspace, workspace) << torch;
  }
}

// cuBLAS's for each product, gone at its end; none for an outer product of batches; cublasLt's alone where there is a
// bias. Before, the first product makes what is kept.
TEST(Switches, ProductsTakeTheirWorkspaceForTheCallFrom215) {
  constexpr std::int64_t kWorkspace = 8'519'680, kOut = 50 * 20 * 4;
  const auto runtime = *Runtime::Make({.framework = *FrameworkOf("2.15"), .gpu = *GpuNamed("A100")});
  Context& context = runtime->context();
  const auto requests = [&](const auto& product) {
    StepEvents events;
    runtime->allocator().SetSink(&events);
    const Tensor out = product();
    runtime->allocator().SetSink(nullptr);
    VersionSwitchesRequests sizes;
    for (const StepEvent& event : events.list()) {
      sizes.push_back(static_cast<std::int64_t>(event.size_bytes) * (event.is_free ? -1 : 1));
    }
    return sizes;
  };
  const Tensor x = Empty(context, {50, 30}, DType::kFloat32), weight = Empty(context, {20, 30}, DType::kFloat32);
  const Tensor bias = Empty(context, {20}, DType::kFloat32);
  const Tensor row = Empty(context, {1, 50, 1}, DType::kFloat32), column = Empty(context, {1, 1, 20}, DType::kFloat32);
  EXPECT_EQ(requests([&] { return Linear(x, weight, {}); }), (VersionSwitchesRequests{kOut, kWorkspace, -kWorkspace}));
  EXPECT_EQ(requests([&] { return Linear(x, weight, bias); }), (VersionSwitchesRequests{kOut, 1 << 20, -(1 << 20)}));
  EXPECT_EQ(requests([&] { return Bmm(row, column); }), VersionSwitchesRequests{kOut});
}

TEST(Switches, ReleasesThatAreNotKnownAreRefused) {
  for (const char* torch : {"1.9", "1.14", "2.16", "2.16.0", "3.0"}) {
    EXPECT_EQ(
        FrameworkOf(torch).status().message(),
        absl::StrCat("torch ", torch, " is not known: 1.10 to 1.13 and 2.0 to 2.15 are; give the nearest of these"));
  }
  EXPECT_TRUE(FrameworkOf("2.15.0").ok());
  for (const char* torch : {"2", "2.x", "", "2.14.1.3", "2.-1"}) {
    EXPECT_EQ(FrameworkOf(torch).status().message(),
              absl::StrCat("torch version '", torch, "' is not of the form 1.10, 1.13, 2.6"));
  }
  for (const char* transformers : {"4.25", "4.58", "5.0.0", "new"}) {
    EXPECT_EQ(
        TransformersFor("2.14", transformers).status().message(),
        absl::StrCat("transformers ", transformers, " is not known: 4.26 to 4.57 are; give the nearest of these"));
  }
}

// Of PyTorch's time, or as it is asked for.
TEST(Switches, TransformersFollowTheirOwnVersionWhereOneIsGiven) {
  EXPECT_TRUE(TransformersFor("2.14")->cache_joins);
  EXPECT_FALSE(TransformersFor("2.8")->cache_joins);
  EXPECT_TRUE(TransformersFor("2.8", "4.56.2")->cache_joins);
  EXPECT_TRUE(TransformersFor("2.14", "4.55.4")->sdpa_copies_inputs);
  EXPECT_FALSE(TransformersFor("2.14", "4.56.2")->sdpa_copies_inputs);
  EXPECT_TRUE(TransformersFor("2.5", "4.54.1")->sdpa_shares_keys);
  EXPECT_FALSE(TransformersFor("2.4", "4.54.1")->sdpa_shares_keys);  // torch has no enable_gqa
  EXPECT_FALSE(TransformersFor("2.0", "4.57")->prefers_sdpa);
}

// (100, 30) floats and their mask, in the order of fused_dropout before and of native_dropout since.
TEST(Switches, DropoutMakesItsMaskBeforeOrBehind) {
  const auto requests = [](bool is_first) {
    Lab lab(&Framework::dropout_makes_mask_first, is_first);
    const Tensor x = lab.Leaf({100, 30});
    Tensor out;
    return lab.RequestsOf([&] { out = Dropout(x, 0.1); });
  };
  EXPECT_EQ(requests(true), (VersionSwitchesRequests{3'000, 12'000}));
  EXPECT_EQ(requests(false), (VersionSwitchesRequests{12'000, 3'000}));
  EXPECT_FALSE(FrameworkOf("1.10")->dropout_makes_mask_first);
  EXPECT_TRUE(FrameworkOf("1.11")->dropout_makes_mask_first);
}

// cross_entropy asks for its logits' own dtype, which autocast leaves alone: half log-probabilities, and a float copy
// for the loss. log_softmax by itself is in float.
TEST(Switches, CrossEntropyTakesHalfLogitsAsTheyAre) {
  constexpr std::uint64_t kElements = 100 * 30;
  Lab lab(&Framework::gradients_add_in_place, true);
  const Autocast scope(lab.context(), true, DType::kBFloat16);
  const Tensor logits = lab.Leaf({100, 30}, DType::kBFloat16);
  const Tensor targets = Empty(lab.context(), {100}, DType::kInt64, Part::kBatch);
  EXPECT_EQ(lab.KeptBy([&] { return CrossEntropy(logits, targets); }), 2 * kElements + 4 * kElements + 4 + 4);
  EXPECT_EQ(lab.KeptBy([&] { return LogSoftmax(logits); }), 4 * kElements);
}

// Two heads' keys for four of queries: as they are, and in backward once for each head.
TEST(Switches, TheEfficientKernelSharesKeysFrom214) {
  constexpr std::uint64_t kHead = 2 * 40 * 8 * 4, kSums = 2 * 4 * 64 * 4;
  const auto kept = [](bool shares) {
    Lab lab(&Framework::efficient_shares_keys, shares);
    const Tensor query = lab.Leaf({2, 4, 40, 8}), key = lab.Leaf({2, 2, 40, 8}), value = lab.Leaf({2, 2, 40, 8});
    return lab.KeptBy([&] { return ScaledDotProductAttention(query, key, value, {}, {.is_causal = true}); });
  };
  EXPECT_EQ(kept(true), 4 * kHead + kSums);
  EXPECT_GT(kept(false), 4 * kHead + 2 * 2 * kHead + 2 * 4 * 40 * 40 * 4);  // both repeated, and all scores
}

// Keys and values are joined to empty ones of the keys' dtype: contiguous copies, of which the values widen.
TEST(Switches, ACacheThatJoinsCopiesInTheKeysDType) {
  Lab lab(&Framework::gradients_add_in_place, true);
  const auto grown = [&](bool joins) {
    Tensor key = Transpose(Empty(lab.context(), {2, 40, 4, 8}, DType::kFloat32), 1, 2);
    Tensor value = Transpose(Empty(lab.context(), {2, 40, 4, 8}, DType::kBFloat16), 1, 2);
    std::vector<Tensor> cache;
    const VersionSwitchesRequests out = lab.RequestsOf([&] { UpdateCache(&cache, joins, key, value); });
    EXPECT_EQ(value.dtype(), joins ? DType::kFloat32 : DType::kBFloat16);
    EXPECT_EQ(cache.size(), 2u);
    return out;
  };
  constexpr std::int64_t kElements = 2 * 40 * 4 * 8;
  EXPECT_EQ(grown(false), VersionSwitchesRequests{});
  EXPECT_EQ(grown(true), (VersionSwitchesRequests{4 * kElements, 4 * kElements, -4 * kElements, -2 * kElements}));
}

// Scales of an 8-bit state: two floats for 10,000 elements' five blocks, or forty.
TEST(Switches, EightBitStatesHaveFinerBlocksFrom25) {
  const auto kept = [](std::int64_t block) {
    Lab lab(&Framework::optimizer_block, block);
    Parameters parameters(lab.context());
    Tensor parameter = parameters.New("p", {100, 100}, Init::Zero());
    parameter.set_grad(Empty(lab.context(), {100, 100}, DType::kFloat32, Part::kGradients));
    const std::unique_ptr<Optimizer> made = *MakeOptimizer("adamw-8bit", parameters, {});
    const std::uint64_t before = lab.memory().live_bytes();
    made->Step();
    return lab.memory().live_bytes() - before;
  };
  constexpr std::uint64_t kMaps = 2 * 256 * 4, kStates = 2 * 10'000;
  EXPECT_EQ(kept(2048), kMaps + kStates + 2 * 5 * 4);
  EXPECT_EQ(kept(256), kMaps + kStates + 2 * 40 * 4);
  EXPECT_EQ(FrameworkOf("2.4")->optimizer_block, 2048);
  EXPECT_EQ(FrameworkOf("2.5")->optimizer_block, 256);
}

// Without a cache, as with checkpointing, the layers get a mask by positions: one of bools for the batch, of which each
// makes a bias. With one they get none.
TEST(Switches, PackedSamplesAreLookedForWhereNoCacheIsKept) {
  constexpr std::int64_t kBatch = 3, kLength = 64;
  Lab lab(&Framework::gradients_add_in_place, true);
  const std::uint64_t before = lab.memory().live_bytes();
  const Tensor mask = PackedCausalMask(lab.context(), kBatch, kLength);
  EXPECT_EQ(lab.memory().live_bytes() - before, static_cast<std::uint64_t>(kBatch * kLength * kLength));
  EXPECT_EQ(mask.sizes(), (Dims{kBatch, 1, kLength, kLength}));
  EXPECT_TRUE(TransformersFor("2.14")->packs_sequences);
  EXPECT_FALSE(TransformersFor("2.5", "4.57")->packs_sequences);  // torch's vmap cannot index yet
  EXPECT_FALSE(TransformersFor("2.14", "4.52")->packs_sequences);
}

// Gradients of input, weight and bias, and nothing beside them: rows are summed within the kernel.
TEST(Switches, LayerNormSumsWithoutBuffers) {
  constexpr std::uint64_t kVersionSwitchesWidth = 24, kRows = 512;
  Lab lab(&Framework::gradients_add_in_place, true);
  const Tensor x = lab.Leaf({kRows, kVersionSwitchesWidth}), weight = lab.Leaf({kVersionSwitchesWidth}),
               bias = lab.Leaf({kVersionSwitchesWidth});
  const Tensor out = LayerNorm(x, weight, bias, 1e-5);
  Tensor grad = EmptyLike(out);
  EXPECT_EQ(lab.PeakOf([&] { Backward(out, std::move(grad)); }), (kRows + 2) * kVersionSwitchesWidth * 4);
}

}  // namespace
}  // namespace ashlar::kernels
