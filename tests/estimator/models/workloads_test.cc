// Every workload in every runtime, and what its flags answer to.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "estimator/workloads/model_config.h"
#include "kernels/workloads/batches.h"
#include "kernels/workloads/workload.h"
#include "tests/kernels/small_runs.h"

namespace ashlar::kernels {
namespace {

Ran RunOn(DeviceKind kind, const SmallRun& small, std::uint64_t capacity = kGiB) {
  const std::unique_ptr<Runtime> runtime = *Runtime::Make(SmallRuntime(kind, capacity));
  Ran out = RunIn(*runtime, small);
  EXPECT_TRUE(runtime->allocator().Validate().ok());
  return out;
}

TEST(Workloads, EachIsRunHere) {
  ASSERT_EQ(SmallRuns().size(), Workloads().size());
  for (std::size_t i = 0; i < SmallRuns().size(); ++i) EXPECT_EQ(Workloads()[i].name, SmallRuns()[i].name);
}

TEST(Workloads, AskForTheSameOnTheHostAndInSimulation) {
  for (const SmallRun& small : SmallRuns()) {
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
  for (const SmallRun& small : SmallRuns()) {
    SCOPED_TRACE(small.name);
    for (const DeviceKind kind : {DeviceKind::kHost, DeviceKind::kSim}) {
      const Ran ran = RunOn(kind, small, 0);
      EXPECT_EQ(ran.status.code(), absl::StatusCode::kResourceExhausted) << ran.status;
      EXPECT_EQ(ran.left, 0u);
    }
  }
}

TEST(Flags, SayWhatDoesNotFit) {
  for (const auto& [name, flag, value, says] : std::vector<std::array<std::string, 4>>{
           {"bert_training", "batch", "none", "--batch 'none'"},
           {"bert_training", "precision", "fp8", "--precision 'fp8'"},
           {"bert_training", "lengths", "9-", "lengths '9-'"},
           {"bert_training", "lengths", "600", "512 positions: give --lengths 512 or less"},
           {"bert_training", "model", "no/such.json", "no/such.json"},
           {"bert_training", "optimizer", "adam", "there is no optimizer 'adam'"},
           {"bert_training", "freeze", "embeddings,embed",
            "--freeze: 'embed' is in no parameter's name; the model has "
            "bert.embeddings, bert.encoder, bert.pooler, classifier"},
           {"gpt_training", "freeze", "transformer", "nothing is left to train"},
           {"tabformer_training", "freeze", "rows", "tab_embeddings.lin_proj"},
           {"tabformer_training", "columns", "3,x", "'x'"},
           {"gpt_training", "model", "tiny", "256 positions: give --lengths 256 or less"},
           {"gpt_training", "checkpointing", "maybe", "--checkpointing 'maybe'"}}) {
    const Ran ran = RunOn(DeviceKind::kSim, {name.c_str(), {{flag, value}}}, 64 * kGiB);
    EXPECT_EQ(std::string(ran.status.message()).find(says) == std::string::npos, false) << ran.status;
  }
}

}  // namespace
}  // namespace ashlar::kernels
