// Every workload in every world, and what its flags answer to.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/workloads/batches.h"
#include "kernels/workloads/model_config.h"
#include "kernels/workloads/workload.h"
#include "tests/kernels/step_recorder.h"

namespace ashlar::kernels {
namespace {

using Given = std::vector<std::pair<std::string, std::string>>;

struct Small {
  const char* name;
  Given flags;
};

const std::vector<Small>& SmallRuns() {
  static const auto* runs = new std::vector<Small>{
      {"attention_inference",
       {{"layers", "2"},
        {"heads", "2"},
        {"depth", "8"},
        {"requests", "5"},
        {"slots", "2"},
        {"prompts", "skewed:2-20"},
        {"answers", "uniform:1-9"}}},
      {"bert_training",
       {{"model", "tiny"}, {"lengths", "uniform:4-16"}, {"steps", "2"}, {"batch", "2"}, {"freeze", "embeddings"}}},
      {"embedding_serving", {{"rows", "50"}, {"width", "8"}, {"requests", "40"}, {"lengths", "uniform:1-30"}}},
      {"gpt_training",
       {{"model", "tiny"}, {"lengths", "12"}, {"steps", "2"}, {"batch", "2"}, {"checkpointing", "true"}}},
      {"stream_fanout", {{"steps", "20"}, {"width", "8"}, {"lengths", "uniform:1-40"}}},
      {"tabformer_training",
       {{"columns", "3,4"},
        {"rows", "2"},
        {"field-width", "8"},
        {"layers", "1"},
        {"inner", "8"},
        {"steps", "2"},
        {"batch", "2"}}}};
  return *runs;
}

struct Ran {
  absl::Status status;
  std::vector<StepEvent> events;
  std::uint64_t left = 0;
};

Ran RunOn(DeviceKind kind, const Small& small, std::uint64_t capacity = kGiB) {
  const std::unique_ptr<World> world = *World::Make({.kind = kind,
                                                     .capacity_bytes = capacity,
                                                     .framework = *FrameworkOf("2.6"),
                                                     .gpu = *GpuNamed("A100"),
                                                     .seed = 5});
  const Workload* workload = FindWorkload(small.name);
  Flags flags(workload->flags);
  for (const auto& [name, value] : small.flags) flags.Set(name, value);
  StepEvents events;
  world->allocator().SetSink(&events);
  Ran out;
  out.status = workload->run(*world, flags, [](const Progress&) {});
  world->allocator().SetSink(nullptr);
  out.events = events.list();
  const PartBytes& live = world->context().memory().live_by_part();
  for (const Part part : {Part::kWeights, Part::kGradients, Part::kOptimizer, Part::kBatch, Part::kActivations}) {
    out.left += live[static_cast<std::size_t>(part)];
  }
  EXPECT_TRUE(world->allocator().Validate().ok());
  return out;
}

TEST(Workloads, EachIsRunHere) {
  ASSERT_EQ(SmallRuns().size(), Workloads().size());
  for (std::size_t i = 0; i < SmallRuns().size(); ++i) EXPECT_EQ(Workloads()[i].name, SmallRuns()[i].name);
}

TEST(Workloads, AskForTheSameOnTheHostAndInSimulation) {
  for (const Small& small : SmallRuns()) {
    SCOPED_TRACE(small.name);
    const Ran host = RunOn(DeviceKind::kHost, small), sim = RunOn(DeviceKind::kSim, small);
    EXPECT_TRUE(host.status.ok()) << host.status;
    EXPECT_TRUE(sim.status.ok()) << sim.status;
    ASSERT_GT(sim.events.size(), 20u);
    EXPECT_EQ(host.events, sim.events);
    EXPECT_EQ(sim.left, 0u);
  }
}

TEST(Workloads, OutOfMemoryEndsThemAndLosesNothing) {
  for (const Small& small : SmallRuns()) {
    SCOPED_TRACE(small.name);
    for (const DeviceKind kind : {DeviceKind::kHost, DeviceKind::kSim}) {
      const Ran ran = RunOn(kind, small, 0);
      EXPECT_EQ(ran.status.code(), absl::StatusCode::kResourceExhausted) << ran.status;
      EXPECT_EQ(ran.left, 0u);
    }
  }
}

TEST(Flags, SayWhatDoesNotFit) {
  for (const auto& [name, flag, value, says] :
       std::vector<std::array<std::string, 4>>{{"bert_training", "batch", "none", "--batch 'none'"},
                                               {"bert_training", "precision", "fp8", "--precision 'fp8'"},
                                               {"bert_training", "lengths", "9-", "lengths '9-'"},
                                               {"bert_training", "lengths", "600", "512 positions"},
                                               {"bert_training", "model", "no/such.json", "no/such.json"},
                                               {"bert_training", "optimizer", "adam", "there is no optimizer 'adam'"},
                                               {"bert_training", "freeze", "embeddings,embed",
                                                "--freeze: 'embed' is in no parameter's name; the model has "
                                                "bert.embeddings, bert.encoder, bert.pooler, classifier"},
                                               {"gpt_training", "freeze", "transformer", "nothing is left to train"},
                                               {"tabformer_training", "freeze", "rows", "tab_embeddings.lin_proj"},
                                               {"tabformer_training", "columns", "3,x", "'x'"},
                                               {"gpt_training", "checkpointing", "maybe", "--checkpointing 'maybe'"}}) {
    const Ran ran = RunOn(DeviceKind::kSim, {name.c_str(), {{flag, value}}}, 64 * kGiB);
    EXPECT_EQ(std::string(ran.status.message()).find(says) == std::string::npos, false) << ran.status;
  }
}

}  // namespace
}  // namespace ashlar::kernels
