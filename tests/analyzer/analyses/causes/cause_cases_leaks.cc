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
    Step(run, 6, 16 * kMiB, 64 * kMiB, [&] {
      if (step % every != 0) return;
      run.At({{"model.py", 50, "features"}, {"model.py", 33, "forward"}, kMain});
      run.Allocate(bytes);
    });
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

// Clones of all gradients between the backward pass and the optimizer's step: sets of the sizes of weights, and no
// copies of them.
SeededInput GradientsLogged(int steps, std::uint64_t layer_bytes) {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  Model(run, 6, layer_bytes);
  Model(run, 6, layer_bytes / 2);
  for (int step = 0; step < steps; ++step) {
    Blocks saved;
    Blocks gradients;
    Forward(run, 6, 16 * kMiB, saved);
    Backward(run, 6, layer_bytes, saved, gradients);
    Backward(run, 6, layer_bytes / 2, saved, gradients);
    run.At({{"train.py", 11, "log_gradients"}, kMain});
    for (int layer = 0; layer < 12; ++layer) run.Allocate(layer < 6 ? layer_bytes : layer_bytes / 2);
    Optimize(run, 6, layer_bytes);
    run.Free(gradients);
  }
  return run.Finish();
}

// A rollout without gradients before each update: a part of the training, and no evaluation.
SeededInput RolloutsKept(int updates, std::uint64_t bytes) {
  const SeededFrame no_grad = {"/lib/torch/utils/_contextlib.py", 124, "decorate_context"};
  SeededRun run({.capacity_bytes = 80 * kGiB});
  Model(run, 6, 16 * kMiB);
  for (int update = 0; update < updates; ++update) {
    for (int turn = 0; turn < 8; ++turn) {
      run.At({{"model.py", 40, "attention"}, {"model.py", 33, "forward"}, {"train.py", 20, "collect"}, no_grad, kMain});
      core::Block* const hidden = run.Allocate(8 * kMiB);
      run.At({{"env.py", 7, "frame"}, {"train.py", 22, "collect"}, no_grad, kMain});
      run.Allocate(bytes);
      run.Free(hidden);
    }
    Step(run, 6, 16 * kMiB, 16 * kMiB);
  }
  return run.Finish();
}

// Batches that raise an error keep what their pass had made; then for a while none does.
SeededInput BrokenBatchesKept(std::uint64_t bytes) {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  Model(run, 6, 64 * kMiB);
  for (int step = 0; step < 48; ++step) {
    const bool is_broken = step < 36 && (step * 7) % 5 < 2;
    run.At({{"train.py", 58, "main"}});
    core::Block* const batch = run.Allocate(2 * kMiB);
    if (is_broken) {
      Blocks kept;
      Forward(run, 6, bytes, kept);
    } else {
      Step(run, 6, bytes, 64 * kMiB);
    }
    run.Free(batch);
  }
  return run.Finish();
}

// Epochs of two steps and an evaluation of twelve batches, whose outputs a metric keeps.
SeededInput MetricOverEpochs(int epochs, std::uint64_t bytes) {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  Model(run, 6, 64 * kMiB);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    for (int step = 0; step < 2; ++step) Step(run, 6, 16 * kMiB, 64 * kMiB);
    for (int batch = 0; batch < 12; ++batch) {
      run.At({{"train.py", 80, "batches"}, {"train.py", 81, "main"}});
      core::Block* const images = run.Allocate(24 * kMiB);
      run.At({{"model.py", 44, "mlp"}, {"model.py", 33, "forward"}, {"train.py", 82, "main"}});
      core::Block* const hidden = run.Allocate(32 * kMiB);
      run.At({{"model.py", 50, "head"}, {"model.py", 33, "forward"}, {"train.py", 82, "main"}});
      run.Allocate(bytes);
      run.Free(hidden);
      run.Free(images);
    }
  }
  return run.Finish();
}

// What a rollout collects goes when its update is made, and the next collects as much.
SeededInput RolloutsLetGo(int updates, std::uint64_t bytes) {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  Model(run, 6, 16 * kMiB);
  core::Block* next = nullptr;  // what the last turn of an update makes is of the next
  for (int update = 0; update < updates; ++update) {
    Blocks collected;
    for (int turn = 0; turn < 16; ++turn) {
      run.At({{"model.py", 40, "attention"}, {"model.py", 33, "forward"}, {"train.py", 20, "collect"}, kMain});
      run.Free(run.Allocate(8 * kMiB));
      if (next != nullptr) collected.push_back(next);
      run.At({{"env.py", 7, "frame"}, {"train.py", 22, "collect"}, kMain});
      next = run.Allocate(bytes);
    }
    Step(run, 6, 16 * kMiB, 16 * kMiB);
    run.Free(collected);
  }
  return run.Finish();
}

// Searches without gradients after the training: the nodes of each tree go when its search is over.
SeededInput TreesLetGo(int searches, std::uint64_t bytes) {
  const SeededFrame no_grad = {"/lib/torch/utils/_contextlib.py", 124, "decorate_context"};
  SeededRun run({.capacity_bytes = 80 * kGiB});
  Model(run, 6, 16 * kMiB);
  Step(run, 6, 16 * kMiB, 16 * kMiB);
  for (int search = 0; search < searches; ++search) {
    Blocks nodes;
    for (int turn = 0; turn < 16; ++turn) {
      run.At({{"net.py", 33, "forward"}, {"tree.py", 9, "expand"}, no_grad, kMain});
      run.Free(run.Allocate(2 * kMiB));
      run.At({{"tree.py", 10, "expand"}, no_grad, kMain});
      nodes.push_back(run.Allocate(bytes));
    }
    run.Free(nodes);
  }
  return run.Finish();
}

// A pool of samples fills up while the training runs: far less than a step takes.
SeededInput PoolFillsUp(int steps, std::uint64_t bytes) {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  Model(run, 6, 16 * kMiB);
  for (int step = 0; step < steps; ++step) {
    Step(run, 6, 48 * kMiB, 16 * kMiB, [&run, bytes] {
      run.At({{"pool.py", 7, "keep"}, kMain});
      run.Allocate(bytes);
    });
  }
  return run.Finish();
}

// The cache goes back after each step, and every segment is obtained again.
SeededInput EmptiedEachStep(int steps, int every) {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  Model(run, 6, 64 * kMiB);
  for (int step = 0; step < steps; ++step) {
    Step(run, 6, 32 * kMiB, 64 * kMiB);
    if (step % every == every - 1) run.EmptyCache();
  }
  return run.Finish();
}

}  // namespace

std::vector<HealthyCase> HealthyLeaks() {
  return {
      {"the cache emptied once an epoch", [] { return EmptiedEachStep(20, 10); }},
      {"rollouts that go with their update", [] { return RolloutsLetGo(4, 40 * kMiB); }},
      {"trees that go with their search", [] { return TreesLetGo(6, 16 * kMiB); }},
      {"a pool that fills up", [] { return PoolFillsUp(12, 10 * kMiB); }},
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
      {"gradients logged in 20 steps", CauseKind::kOutputsKept, [] { return GradientsLogged(20, 32 * kMiB); }},
      {"gradients logged in 10 steps", CauseKind::kOutputsKept, [] { return GradientsLogged(10, 96 * kMiB); }},
      {"rollouts of 12 updates", CauseKind::kOutputsKept, [] { return RolloutsKept(12, 40 * kMiB); }},
      {"rollouts of 30 updates", CauseKind::kOutputsKept, [] { return RolloutsKept(30, 10 * kMiB); }},
      {"outputs of evaluations that follow each epoch", CauseKind::kOutputsKept,
       [] { return MetricOverEpochs(3, 200 * kMiB); }},
      {"passes of broken batches", CauseKind::kGraphKeptAlive, [] { return BrokenBatchesKept(20 * kMiB); }},
  };
}

}  // namespace ashlar::tests
