// Programs that keep something from step to step, or give back in each what they need in the next.
#include "tests/analyzer/analyses/causes/cause_cases.h"
#include "tests/analyzer/analyses/causes/training_parts.h"

namespace ashlar::tests {
namespace {

// One line's output of every step is put aside; the rest of the step goes.
SeededInput OutputsKept(int steps, std::uint64_t bytes, int every) {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  Model(run, 6, 64 * kMiB);
  for (int step = 0; step < steps; ++step) {
    Blocks saved;
    Blocks gradients;
    Forward(run, 6, 16 * kMiB, saved);
    if (step % every == 0) {
      run.At({{"model.py", 50, "features"}, {"model.py", 33, "forward"}, kMain});
      run.Allocate(bytes);
    }
    Backward(run, 6, 64 * kMiB, saved, gradients);
    Optimize(run, 6, 64 * kMiB);
    run.Free(gradients);
  }
  return run.Finish();
}

// A hook of two modules clones what passes it.
SeededInput Watched(int steps, std::uint64_t bytes) {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  Model(run, 6, 64 * kMiB);
  for (int step = 0; step < steps; ++step) {
    Blocks saved;
    Blocks gradients;
    for (int half = 0; half < 2; ++half) {
      Forward(run, 3, 16 * kMiB, saved);
      run.At({{"watch.py", 9, "keep"}, kInner, kCall, {"model.py", 33, "forward"}, kCall, kMain});
      run.Allocate(bytes);
    }
    Backward(run, 6, 64 * kMiB, saved, gradients);
    Optimize(run, 6, 64 * kMiB);
    run.Free(gradients);
  }
  return run.Finish();
}

// Keys and values of each layer are joined to those before, token by token.
SeededInput GrownCache(int tokens, std::uint64_t token_bytes, int layers) {
  SeededRun run({.conf = "expandable_segments:True", .capacity_bytes = 80 * kGiB});
  Model(run, layers, 16 * kMiB);
  std::vector<core::Block*> caches(static_cast<std::size_t>(layers), nullptr);
  for (int token = 0; token < tokens; ++token) {
    run.At({{"chat.py", 12, "say"}, kMain});
    core::Block* const ids = run.Allocate(512);
    for (int layer = 0; layer < layers; ++layer) {
      run.At({{"model.py", 40, "attention"}, {"model.py", 33, "forward"}, {"chat.py", 13, "say"}, kMain});
      run.Free(run.Allocate(kMiB));
      run.At({{"cache.py", 7, "update"}, {"model.py", 33, "forward"}, {"chat.py", 13, "say"}, kMain});
      core::Block*& cache = caches[static_cast<std::size_t>(layer)];
      core::Block* const grown = run.Allocate(static_cast<std::uint64_t>(64 + token) * token_bytes);
      if (cache != nullptr) run.Free(cache);
      cache = grown;
    }
    run.Free(ids);
  }
  return run.Finish();
}

// Attempts with half the batch of the one before; what the failed ones had stays where the exception is kept.
SeededInput Attempts(std::uint64_t bytes, int failing) {
  SeededRun run({.capacity_bytes = static_cast<std::uint64_t>(16 * failing) * bytes});
  Model(run, 4, 32 * kMiB);
  for (int attempt = 0; attempt < failing; ++attempt) {
    for (int layer = 0; layer < 12; ++layer) {
      run.At({{"net.py", 9, "mlp"}, {"net.py", 5, "forward"}, kMain});
      run.Allocate(bytes);
    }
    run.Fail(static_cast<std::uint64_t>(16 * failing) * bytes);
  }
  return run.Finish();
}

// The cache goes back after each step, and every segment is obtained again.
SeededInput EmptiedEachStep(int steps, int every) {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  Model(run, 6, 64 * kMiB);
  for (int step = 0; step < steps; ++step) {
    Blocks saved;
    Blocks gradients;
    Forward(run, 6, 32 * kMiB, saved);
    Backward(run, 6, 64 * kMiB, saved, gradients);
    Optimize(run, 6, 64 * kMiB);
    run.Free(gradients);
    if (step % every == every - 1) run.EmptyCache();
  }
  return run.Finish();
}

}  // namespace

std::vector<HealthyCase> HealthyLeaks() {
  return {
      {"the cache emptied once an epoch", [] { return EmptiedEachStep(20, 10); }},
  };
}

std::vector<SeededCase> LeakCases() {
  using analyses::CauseKind;
  return {
      {"emptied in each of 30 steps", CauseKind::kEmptyCacheEachStep, [] { return EmptiedEachStep(30, 1); }},
      {"emptied in each of 8 steps", CauseKind::kEmptyCacheEachStep, [] { return EmptiedEachStep(8, 1); }},
      {"emptied in every second step", CauseKind::kEmptyCacheEachStep, [] { return EmptiedEachStep(20, 2); }},
      {"3 failed attempts", CauseKind::kExceptionHoldsFrames, [] { return Attempts(60 * kMiB, 3); }},
      {"2 failed attempts", CauseKind::kExceptionHoldsFrames, [] { return Attempts(40 * kMiB, 2); }},
      {"4 failed attempts", CauseKind::kExceptionHoldsFrames, [] { return Attempts(100 * kMiB, 4); }},
      {"a hook over 10 steps", CauseKind::kHooksKeepActivations, [] { return Watched(10, 64 * kMiB); }},
      {"a hook over 25 steps", CauseKind::kHooksKeepActivations, [] { return Watched(25, 40 * kMiB); }},
      {"a hook over 50 steps", CauseKind::kHooksKeepActivations, [] { return Watched(50, 100 * kMiB); }},
      {"a cache of 20 large tokens", CauseKind::kKvCacheGrows, [] { return GrownCache(20, 16 * kMiB, 4); }},
      {"a cache of 100 tokens", CauseKind::kKvCacheGrows, [] { return GrownCache(100, kMiB, 8); }},
      {"a cache of 40 tokens", CauseKind::kKvCacheGrows, [] { return GrownCache(40, 4 * kMiB, 3); }},
      {"outputs of 12 steps", CauseKind::kOutputsKept, [] { return OutputsKept(12, 100 * kMiB, 1); }},
      {"outputs of every fifth step", CauseKind::kOutputsKept, [] { return OutputsKept(40, 200 * kMiB, 5); }},
      {"outputs of 30 steps", CauseKind::kOutputsKept, [] { return OutputsKept(30, 60 * kMiB, 1); }},
  };
}

}  // namespace ashlar::tests
