// Programs without a flaw, of many kinds. None may raise an alarm.
#include "allocator/base/rng.h"
#include "tests/analyzer/analyses/causes/cause_cases.h"

namespace ashlar::tests {
namespace {

using HealthyBlocks = std::vector<core::Block*>;

void Weights(SeededRun& run, int layers, std::uint64_t layer_bytes, HealthyBlocks* out = nullptr) {
  run.At("model.py", 12, "__init__");
  for (int layer = 0; layer < layers; ++layer) {
    core::Block* block = run.Allocate(layer_bytes);
    if (out != nullptr) out->push_back(block);
  }
}

// Fixed sizes: forward saves, backward frees in reverse, gradients are reused, the optimizer's state exists already.
SeededInput Training(const char* conf, int layers, std::uint64_t layer_bytes, std::uint64_t activation_bytes) {
  SeededRun run({.conf = conf, .capacity_bytes = 80 * kGiB});
  Weights(run, layers, layer_bytes);
  run.At("optimizer.py", 9, "__init__");
  for (int layer = 0; layer < layers; ++layer) run.Allocate(2 * layer_bytes);
  for (int step = 0; step < 6; ++step) {
    HealthyBlocks saved;
    HealthyBlocks gradients;
    for (int layer = 0; layer < layers; ++layer) {
      run.At({{"model.py", 40, "forward"}, {"train.py", 60, "train_step"}});
      saved.push_back(run.Allocate(activation_bytes));
    }
    for (int layer = 0; layer < layers; ++layer) {
      run.At({{"train.py", 66, "backward"}, {"train.py", 60, "train_step"}});
      gradients.push_back(run.Allocate(layer_bytes));
      run.Free(saved.back());
      saved.pop_back();
    }
    run.Free(gradients);
  }
  return run.Finish();
}

SeededInput Inference(std::uint64_t activation_bytes) {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  Weights(run, 24, 50 * kMiB);
  for (int batch = 0; batch < 20; ++batch) {
    core::Block* previous = nullptr;
    for (int layer = 0; layer < 24; ++layer) {
      run.At({{"model.py", 40, "forward"}, {"serve.py", 21, "generate"}});
      core::Block* next = run.Allocate(activation_bytes);
      run.Free(previous);
      previous = next;
    }
    run.Free(previous);
  }
  return run.Finish();
}

// All of it within a function that inference_mode decorates, the model's making too.
SeededInput MadeUnderInferenceMode() {
  constexpr SeededFrame kDecorated = {"/lib/torch/utils/_contextlib.py", 124, "decorate_context"};
  SeededRun run({.capacity_bytes = 80 * kGiB});
  run.At({{"model.py", 12, "__init__"}, {"evaluate.py", 70, "evaluate"}, kDecorated, {"evaluate.py", 90, "main"}});
  for (int layer = 0; layer < 24; ++layer) run.Allocate(50 * kMiB);
  for (int batch = 0; batch < 20; ++batch) {
    for (int layer = 0; layer < 24; ++layer) {
      run.At({{"model.py", 40, "forward"}, {"evaluate.py", 72, "evaluate"}, kDecorated, {"evaluate.py", 90, "main"}});
      run.Free(run.Allocate(40 * kMiB));
    }
  }
  return run.Finish();
}

SeededInput ManySmall() {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  run.At("model.py", 12, "__init__");
  for (int i = 0; i < 6000; ++i) run.Allocate(60 * kKiB);
  return run.Finish();
}

SeededInput Tiny() {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  run.At("toy.py", 3, "main");
  HealthyBlocks blocks;
  for (int i = 0; i < 50; ++i) blocks.push_back(run.Allocate(100 * kKiB));
  run.Free(blocks);
  return run.Finish();
}

// A few random lengths, all of which stay below the first one.
SeededInput VaryingBelowTheFirst() {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  Weights(run, 12, 100 * kMiB);
  Rng random(11);
  for (int step = 0; step < 20; ++step) {
    const std::uint64_t length = step == 0 ? 512 : 480 + 8 * random.Below(5);
    HealthyBlocks saved;
    run.At({{"model.py", 40, "forward"}, {"train.py", 60, "train_step"}});
    for (int layer = 0; layer < 12; ++layer) saved.push_back(run.Allocate(length * 100 * kKiB));
    run.Free(saved);
  }
  return run.Finish();
}

// Transfers on a side stream that end before the next one begins.
SeededInput TwoStreamsInStep() {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  Weights(run, 12, 100 * kMiB);
  const Stream side{7};
  for (int step = 0; step < 10; ++step) {
    run.At("fsdp.py", 88, "all_gather");
    core::Block* block = run.Allocate(200 * kMiB);
    run.RecordStream(block, side);
    run.Free(block);
    run.FinishStream(side);
  }
  return run.Finish();
}

SeededInput WarmWindow() {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  Weights(run, 24, 50 * kMiB);
  run.At({{"model.py", 40, "forward"}, {"train.py", 60, "train_step"}});
  for (int step = 0; step < 4; ++step) {
    if (step == 2) run.ForgetEvents();
    HealthyBlocks saved;
    for (int layer = 0; layer < 24; ++layer) saved.push_back(run.Allocate(30 * kMiB));
    run.Free(saved);
  }
  return run.Finish();
}

// A cache that was filled by one phase and is used by the next.
SeededInput TrainThenEvaluate() {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  Weights(run, 12, 100 * kMiB);
  for (int phase = 0; phase < 2; ++phase) {
    run.At({{"model.py", 40, "forward"}, {phase == 0 ? "train.py" : "eval.py", 60, "step"}});
    for (int step = 0; step < 4; ++step) {
      HealthyBlocks saved;
      for (int layer = 0; layer < (phase == 0 ? 12 : 1); ++layer) saved.push_back(run.Allocate(60 * kMiB));
      run.Free(saved);
    }
  }
  return run.Finish();
}

SeededInput GraphPoolInUse() {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  Weights(run, 12, 100 * kMiB);
  run.At("graphs.py", 30, "capture");
  for (int i = 0; i < 4; ++i) run.Allocate(100 * kMiB, {}, PoolId{0, 1});
  return run.Finish();
}

}  // namespace

std::vector<HealthyCase> AllHealthy() {
  std::vector<HealthyCase> out = {
      {"training, fixed sizes", [] { return Training("", 16, 64 * kMiB, 100 * kMiB); }},
      {"training, large layers", [] { return Training("", 4, 700 * kMiB, 900 * kMiB); }},
      {"training, expandable", [] { return Training("expandable_segments:True", 16, 64 * kMiB, 100 * kMiB); }},
      {"training, split limit", [] { return Training("max_split_size_mb:512", 16, 64 * kMiB, 100 * kMiB); }},
      {"inference, 40 MiB", [] { return Inference(40 * kMiB); }},
      {"inference, 300 MiB", [] { return Inference(300 * kMiB); }},
      {"a model made under inference_mode", MadeUnderInferenceMode},
      {"6,000 small tensors", ManySmall},
      {"tiny program", Tiny},
      {"lengths below the first", VaryingBelowTheFirst},
      {"transfers in step", TwoStreamsInStep},
      {"window in mid-run", WarmWindow},
      {"train, then evaluate", TrainThenEvaluate},
      {"CUDA graph pool in use", GraphPoolInUse},
  };
  for (HealthyCase& program : HealthyPrograms()) out.push_back(std::move(program));
  for (HealthyCase& program : HealthyLeaks()) out.push_back(std::move(program));
  for (HealthyCase& program : HealthyMemory()) out.push_back(std::move(program));
  for (HealthyCase& program : HealthyOwners()) out.push_back(std::move(program));
  return out;
}

std::vector<SeededCase> AllSeeded() {
  std::vector<SeededCase> out;
  for (std::vector<SeededCase> (*list)() :
       {DeviceCases, HoleCases, LeakCases, MemoryCases, OwnerCases, PoolCases, ProgramCases, SettingsCases}) {
    for (SeededCase& seeded : list()) out.push_back(std::move(seeded));
  }
  return out;
}

}  // namespace ashlar::tests
