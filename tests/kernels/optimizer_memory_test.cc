// What optimizers, clipping and loss scaling allocate in each version of PyTorch: bytes and orders worked out by hand
// from the Python sources that kernels/optim names.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/optim/gradient_norm.h"
#include "kernels/optim/optimizer.h"
#include "kernels/workloads/runtime.h"
#include "kernels/workloads/training.h"
#include "tests/kernels/step_recorder.h"

namespace ashlar::kernels {
namespace {

// Parameters with gradients, in a runtime of one version.
struct Model {
  explicit Model(const char* torch, const std::vector<Dims>& sizes, DeviceKind kind = DeviceKind::kSim)
      : runtime(*Runtime::Make({.kind = kind, .framework = *FrameworkOf(torch), .gpu = *GpuNamed("A100")})),
        parameters(runtime->context()) {
    for (const Dims& of : sizes) {
      Tensor parameter = parameters.New("p", of, Init::Zero());
      parameter.set_grad(Empty(runtime->context(), of, DType::kFloat32, Part::kGradients));
    }
  }
  Context& context() { return runtime->context(); }

  // Requests of `work`: bytes of each allocation, and minus the bytes of each free.
  template <typename Work>
  std::vector<std::int64_t> Requests(const Work& work) {
    StepEvents events;
    runtime->allocator().SetSink(&events);
    work();
    runtime->allocator().SetSink(nullptr);
    std::vector<std::int64_t> out;
    for (const StepEvent& event : events.list()) {
      out.push_back(static_cast<std::int64_t>(event.size_bytes) * (event.is_free ? -1 : 1));
    }
    return out;
  }
  // The bytes that `work` has at a time more than before it.
  template <typename Work>
  std::uint64_t Peak(const Work& work) {
    context().memory().ResetPeak();
    const std::uint64_t before = context().memory().live_bytes();
    work();
    return context().memory().peak_bytes() - before;
  }

  std::unique_ptr<Runtime> runtime;
  Parameters parameters;
};

using Requests = std::vector<std::int64_t>;

// 200,000 elements are four chunks of 65,536, and every gradient gets as many floats.
TEST(Clipping, ByVersion) {
  const std::vector<Dims> sizes = {{400, 500}, {70}, {10}};
  const auto clip = [&](const char* torch) {
    Model model(torch, sizes);
    return model.Requests([&] { ClipGradientNorm(model.parameters, 1); });
  };
  // Chunks, a norm a gradient; stack, total; total + 1e-6, reciprocal, most / it; clamped.
  EXPECT_EQ(clip("2.6"), (Requests{48, 4, 4, 4, -48, 12, 4, -12, -4, -4, -4, 4, 4, 4, -4, -4, 4, -4, -4, -4}));
  EXPECT_EQ(clip("2.0"), (Requests{48, 12, -48, 12, 4, -12, -12, 4, 4, 4, -4, -4, 4, -4, -4, -4}));
  Model one_by_one("1.13", {{70}, {10}});
  EXPECT_EQ(one_by_one.Requests([&] { ClipGradientNorm(one_by_one.parameters, 1); }),
            (Requests{4, 4, 8, -4, -4, 4, -8, 4, 4, 4, -4, -4, 4, -4, -4, -4}));
}

TEST(Clipping, NoGradientsTakeNothing) {
  Model model("2.6", {});
  EXPECT_EQ(model.Requests([&] { ClipGradientNorm(model.parameters, 1); }), Requests{});
}

// scale.double(), its reciprocal, that as float; what was found lives until the scale is updated.
TEST(LossScale, TakesScalarsAlone) {
  Model model("2.6", {{400, 500}});
  GradientScaler scaler(model.context(), 65'536);
  EXPECT_EQ(model.Requests([&] { EXPECT_TRUE(scaler.Unscale(model.parameters)); }), (Requests{8, 8, -8, 4, -8, 4, -4}));
  EXPECT_EQ(model.Requests([&] { scaler.Update(); }), Requests{-4});
}

TEST(LossScale, IsHalvedByWhatIsNotFiniteAndDoubledAfterTwoThousandSteps) {
  Model model("2.6", {{2}}, DeviceKind::kHost);
  Context& context = model.context();
  auto* gradient = static_cast<float*>(model.parameters.all()[0].tensor.grad().view().data);
  GradientScaler scaler(context, 1024);
  Tensor one = Empty(context, {}, DType::kFloat32);
  *static_cast<float*>(one.view().data) = 1;
  const auto scale = [&] { return *static_cast<float*>(scaler.Scale(one).view().data); };
  EXPECT_EQ(scale(), 1024);
  gradient[0] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(scaler.Unscale(model.parameters));
  scaler.Update();
  EXPECT_EQ(scale(), 512);
  for (int step = 0; step < 2000; ++step) {
    EXPECT_EQ(scale(), 512);
    gradient[0] = gradient[1] = 1024;
    ASSERT_TRUE(scaler.Unscale(model.parameters));
    EXPECT_EQ(gradient[1], 2);
    scaler.Update();
  }
  EXPECT_EQ(scale(), 1024);
}

std::uint64_t PeakOfSecondStep(const char* torch, const char* optimizer, const std::vector<Dims>& sizes) {
  Model model(torch, sizes);
  const std::unique_ptr<Optimizer> made = *MakeOptimizer(optimizer, model.parameters, {});
  made->Step();
  return model.Peak([&] { made->Step(); });
}

TEST(AdamW, DefaultsToTheFormOfTheVersion) {
  const std::vector<Dims> sizes = {{300, 200}, {70, 10}};
  constexpr std::uint64_t kAll = (300 * 200 + 70 * 10) * 4, kLargest = 300 * 200 * 4;
  EXPECT_EQ(PeakOfSecondStep("1.13", "adamw", sizes), 2 * kLargest);  // one at a time: root and quotient
  EXPECT_EQ(PeakOfSecondStep("2.0", "adamw", sizes), 2 * kAll);
  EXPECT_EQ(PeakOfSecondStep("2.1", "adamw", sizes), kAll);
  EXPECT_EQ(PeakOfSecondStep("2.6", "adamw", sizes), kAll);
  EXPECT_EQ(PeakOfSecondStep("1.13", "adamw-foreach", sizes), 2 * kAll);
  EXPECT_EQ(PeakOfSecondStep("2.6", "adamw-fused", sizes), 0u);
}

TEST(ZeroGradients, KeepsThemBeforeTwo) {
  for (const auto& [torch, bytes] :
       std::vector<std::pair<const char*, std::uint64_t>>{{"1.13", 30 * 20 * 4}, {"2.0", 0}, {"2.6", 0}}) {
    Model model(torch, {{30, 20}});
    ZeroGradients(model.parameters);
    EXPECT_EQ(model.context().memory().live_by_part()[static_cast<std::size_t>(Part::kGradients)], bytes) << torch;
  }
}

// In lists the decayed gradients of all come first, then the momentum buffers; in the loop a pair a parameter.
TEST(Sgd, DecaysInListsFromTwoOn) {
  const auto step = [](const char* torch) {
    Model model(torch, {{30, 20}, {7, 10}});
    const std::unique_ptr<Optimizer> made = *MakeOptimizer("sgd", model.parameters, {.momentum = 0.9});
    return model.Requests([&] { made->Step(); });
  };
  EXPECT_EQ(step("2.6"), (Requests{2400, 280, 2400, 280, -280, -2400}));
  EXPECT_EQ(step("1.13"), (Requests{2400, 2400, -2400, 280, 280, -280}));
}

// Group by group, weights first, then vectors: states and the update of the one, then of the other, as step() of
// torch/optim/adamw.py and _adafactor.py loops over param_groups. Temporaries are a function's and end with the group,
// a list's from the last to the first, as CPython frees lists.
TEST(AdamW, StatesAndUpdateOfAGroupThenOfTheNext) {
  const auto step = [](const char* optimizer, const char* torch, int steps = 1) {
    Model model(torch, {{30, 20}, {5}, {7, 10}, {6}});  // 2400, 20, 280, 24 bytes
    const std::unique_ptr<Optimizer> made = *MakeOptimizer(optimizer, model.parameters, {});
    for (int i = 1; i < steps; ++i) made->Step();
    return model.Requests([&] { made->Step(); });
  };
  EXPECT_EQ(step("adamw", "2.6"), (Requests{2400, 2400, 280, 280, 2400, 280, -280, -2400,  //
                                            20, 20, 24, 24, 20, 24, -24, -20}));
  EXPECT_EQ(step("adamw", "2.6", 2), (Requests{2400, 280, -280, -2400, 20, 24, -24, -20}));
  EXPECT_EQ(step("adamw", "2.0", 2), (Requests{2400, 280, 2400, 280, -280, -2400, -280, -2400,  //
                                               20, 24, 20, 24, -24, -20, -24, -20}));
  // Root and quotient; the root goes at once, the quotient when the next one's is there or the group is done.
  EXPECT_EQ(step("adamw-loop", "1.13"), (Requests{2400, 2400, 280,   280,                          //
                                                  2400, 2400, -2400, 280, 280, -280, -2400, -280,  //
                                                  20,   20,   24,    24,  20,  20,   -20,   24,   24, -24, -20, -24}));
  EXPECT_EQ(step("adamw-fused", "2.6"), (Requests{4, 2400, 2400, 4, 280, 280, 4, 20, 20, 4, 24, 24}));
  // transformers': states in the loop, and its root is held from one group into the next.
  EXPECT_EQ(step("adamw-hf", "1.10"), (Requests{2400, 2400, 2400, 280, 280, 280, -2400,  //
                                                20, 20, 20, -280, 24, 24, 24, -20, -24}));
}

// By name as well: T5's relative_attention_bias.weight, of two dims, does not decay (Trainer.create_optimizer).
TEST(Groups, WhatIsNamedABiasDoesNotDecay) {
  Model model("2.6", {});
  for (const char* name : {"q.weight", "relative_attention_bias.weight", "o.weight"}) {
    model.parameters.New(name, {3, 4}, Init::Zero());
  }
  const std::vector<std::vector<Turn>> groups = GroupsOf(model.parameters, 0.01);
  ASSERT_EQ(groups[0].size(), 2u);
  EXPECT_EQ(groups[0][1].parameter->name, "o.weight");
  ASSERT_EQ(groups[1].size(), 1u);
  EXPECT_EQ(groups[1][0].parameter->name, "relative_attention_bias.weight");
  EXPECT_EQ(groups[1][0].weight_decay, 0);
}

// A group's states first; then a turn: norm of the parameter, row and column means (the last turn's go when these are
// there), row x column with the mean of the rows, norm of the update. The last turn's update goes when this one's is
// made.
TEST(TorchAdafactor, OneTensorOfTheParametersSizeAndTheLastTurns) {
  Model model("2.6", {{30, 20}, {7, 10}, {5}});
  const std::unique_ptr<Optimizer> made = *MakeOptimizer("adafactor-torch", model.parameters, {});
  constexpr std::int64_t kWorkspace = 8'519'680;
  const Requests states = {120, 80, 28, 40}, vector_states = {20};
  const Requests turns = {4, -4, 120, 80,   2400, kWorkspace, 4,   -4, 4,  -4,     // (30, 20)
                          4, -4, 28,  -120, 40,   -80,        280, 4,  -4, -2400,  // (7, 10)
                          4, -4, -28, -40,  -280};
  const Requests vector_turns = {4, -4, 20, 20, 4, -4, -20, -20};  // (5)
  Requests first, second;
  for (const Requests* part : {&states, &turns, &vector_states, &vector_turns}) {
    first.insert(first.end(), part->begin(), part->end());
  }
  for (const Requests* part : {&turns, &vector_turns}) {
    for (const std::int64_t request : *part) {
      if (request != kWorkspace) second.push_back(request);
    }
  }
  EXPECT_EQ(model.Requests([&] { made->Step(); }), first);
  EXPECT_EQ(model.Requests([&] { made->Step(); }), second);
  EXPECT_EQ(model.Peak([&] { made->Step(); }), 2400u + 280 + 28 + 40 + 4);
}

TEST(TorchAdafactor, IsThereFromTwoPointFive) {
  Model old("2.4", {{3, 2}});
  EXPECT_EQ(MakeOptimizer("adafactor-torch", old.parameters, {}).status().message(),
            "adafactor-torch: PyTorch has an Adafactor of its own from 2.5 on");
  Model first("2.5", {{3, 2}});
  EXPECT_TRUE(MakeOptimizer("adafactor-torch", first.parameters, {}).ok());
}

}  // namespace
}  // namespace ashlar::kernels
