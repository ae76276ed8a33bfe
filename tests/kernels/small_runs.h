// Each workload, small enough to run in every runtime of a test.
#ifndef ASHLAR_TESTS_KERNELS_SMALL_RUNS_H_
#define ASHLAR_TESTS_KERNELS_SMALL_RUNS_H_

#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "kernels/workloads/workload.h"
#include "tests/kernels/step_recorder.h"

namespace ashlar::kernels {

struct SmallRun {
  const char* name;
  std::vector<std::pair<std::string, std::string>> flags;
};

inline void PrintTo(const SmallRun& run, std::ostream* out) { *out << run.name; }

inline const std::vector<SmallRun>& SmallRuns() {
  static const auto* runs = new std::vector<SmallRun>{
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
  std::vector<double> losses;
  std::vector<StepEvent> events;
  std::uint64_t left = 0;  // of what the run made
};

inline Ran RunIn(Runtime& runtime, const SmallRun& small) {
  const Workload* workload = FindWorkload(small.name);
  Flags flags(workload->flags);
  for (const auto& [name, value] : small.flags) flags.Set(name, value);
  StepEvents events;
  runtime.allocator().SetSink(&events);
  Ran out;
  out.status = workload->run(runtime, flags, [&](const Progress& progress) {
    if (progress.loss) out.losses.push_back(*progress.loss);
  });
  runtime.allocator().SetSink(nullptr);
  if (const absl::Status finished = runtime.Finish(); out.status.ok()) out.status = finished;
  out.events = events.list();
  const PartBytes& live = runtime.context().memory().live_by_part();
  for (const Part part : {Part::kWeights, Part::kGradients, Part::kOptimizer, Part::kBatch, Part::kActivations}) {
    out.left += live[static_cast<std::size_t>(part)];
  }
  return out;
}

// What every runtime of a test is made with, but the device.
inline RuntimeOptions SmallRuntime(DeviceKind kind, std::optional<std::uint64_t> capacity = kGiB) {
  return {
      .kind = kind, .capacity_bytes = capacity, .framework = *FrameworkOf("2.6"), .gpu = *GpuNamed("A100"), .seed = 5};
}

}  // namespace ashlar::kernels

#endif  // ASHLAR_TESTS_KERNELS_SMALL_RUNS_H_
