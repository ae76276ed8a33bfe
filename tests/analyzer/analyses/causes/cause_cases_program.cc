// Programs whose flaw lies in the program: what it keeps, and when.
#include "tests/analyzer/analyses/causes/cause_cases.h"
#include "tests/analyzer/analyses/causes/training_parts.h"

namespace ashlar::tests {
namespace {

// Two tensors of batch x length x vocabulary beside the activations.
SeededInput Logits(std::uint64_t logits_bytes) {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  Model(run, 8, 64 * kMiB);
  for (int step = 0; step < 5; ++step) {
    Blocks saved;
    Blocks gradients;
    Forward(run, 8, 20 * kMiB, saved);
    Blocks logits;
    run.At({{"model.py", 70, "lm_head"}, {"model.py", 33, "forward"}, kMain});
    logits.push_back(run.Allocate(logits_bytes));
    run.At({{"functional.py", 3000, "cross_entropy"}, kMain});
    logits.push_back(run.Allocate(logits_bytes));
    run.Free(logits);
    Backward(run, 8, 64 * kMiB, saved, gradients);
    run.Free(gradients);
  }
  return run.Finish();
}

// The loss asks for a third tensor as large as the logits.
SeededInput LogitsDoNotFit(std::uint64_t logits_bytes) {
  SeededRun run({.capacity_bytes = 8 * 64 * kMiB + 24 * 20 * kMiB + 5 * logits_bytes / 2});
  Model(run, 8, 64 * kMiB);
  Blocks saved;
  Forward(run, 8, 20 * kMiB, saved);
  run.At({{"model.py", 70, "lm_head"}, {"model.py", 33, "forward"}, kMain});
  run.Allocate(logits_bytes);
  run.At({{"train.py", 31, "loss"}, kMain});
  run.Allocate(logits_bytes - 2 * kMiB);
  run.At({{"functional.py", 3000, "cross_entropy"}, kMain});
  run.Allocate(logits_bytes - 2 * kMiB);
  return run.Finish();
}

// Fails in the first optimizer step.
SeededInput StateDoesNotFit(std::uint64_t layer_bytes) {
  SeededRun run({.capacity_bytes = layer_bytes * 8 * 5 / 2});
  Model(run, 8, layer_bytes);
  Blocks saved;
  Blocks gradients;
  Forward(run, 8, layer_bytes / 16, saved);
  Backward(run, 8, layer_bytes, saved, gradients);
  run.At({{"torch/optim/adamw.py", 180, "_init_group"}, kMain});
  for (int i = 0; i < 16; ++i) run.Allocate(layer_bytes);
  return run.Finish();
}

SeededInput Foreach(int layers, std::uint64_t layer_bytes) {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  Model(run, layers, layer_bytes);
  run.At({{"torch/optim/adamw.py", 180, "_init_group"}, kMain});
  for (int i = 0; i < 2 * layers; ++i) run.Allocate(layer_bytes);
  for (int step = 0; step < 4; ++step) {
    Blocks saved;
    Blocks gradients;
    Forward(run, layers, layer_bytes / 16, saved);
    Backward(run, layers, layer_bytes, saved, gradients);
    Blocks lists;
    run.At({{"torch/optim/adamw.py", 600, "_multi_tensor_adamw"}, kMain});
    for (int i = 0; i < layers; ++i) lists.push_back(run.Allocate(layer_bytes));
    run.Free(lists);
    run.Free(gradients);
  }
  return run.Finish();
}

// `total_loss += loss`: the first layer's activations of every step stay.
SeededInput GraphKept(int steps, std::uint64_t activation_bytes) {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  Model(run, 6, 64 * kMiB);
  for (int step = 0; step < steps; ++step) {
    Blocks saved;
    Blocks gradients;
    Forward(run, 6, activation_bytes, saved);
    saved.erase(saved.begin(), saved.begin() + 2);
    Backward(run, 5, 64 * kMiB, saved, gradients);
    Optimize(run, 6, 64 * kMiB);
    run.Free(gradients);
  }
  return run.Finish();
}

SeededInput EvalWithGrad(int layers, std::uint64_t bytes) {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  Model(run, layers, 32 * kMiB);
  for (int batch = 0; batch < 5; ++batch) {
    Blocks saved;
    for (int layer = 0; layer < layers; ++layer) {
      for (int line = 40; line < 43; ++line) {
        run.At({{"model.py", line, "forward"}, {"eval.py", 20, "evaluate"}, kMain});
        saved.push_back(run.Allocate(bytes));
      }
    }
    run.Free(saved);
  }
  return run.Finish();
}

SeededInput Predictions(int batches, std::uint64_t bytes) {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  Model(run, 8, 32 * kMiB);
  for (int batch = 0; batch < batches; ++batch) {
    for (int layer = 0; layer < 8; ++layer) {
      run.At({{"model.py", 40, "forward"}, {"trainer.py", 20, "prediction_step"}, kMain});
      run.Free(run.Allocate(30 * kMiB));
    }
    run.At({{"trainer.py", 31, "prediction_step"}, kMain});
    run.Allocate(bytes);
  }
  return run.Finish();
}

SeededInput LoadedTwice(int layers, std::uint64_t layer_bytes) {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  Model(run, layers, layer_bytes);
  Blocks loaded;
  run.At({{"/lib/torch/serialization.py", 1800, "restore_location"}, {"train.py", 15, "resume"}, kMain});
  for (int layer = 0; layer < layers; ++layer) loaded.push_back(run.Allocate(layer_bytes));
  run.Free(loaded);
  return run.Finish();
}

SeededInput MicroSteps(int micro_steps, std::uint64_t layer_bytes) {
  SeededRun run({.conf = "expandable_segments:True", .capacity_bytes = 80 * kGiB});
  Model(run, 8, layer_bytes);
  for (int step = 0; step < 4; ++step) {
    Blocks gradients;
    for (int micro = 0; micro < micro_steps; ++micro) {
      Blocks saved;
      Blocks made;
      Forward(run, 8, layer_bytes / 4, saved);
      Backward(run, 8, layer_bytes, saved, micro == 0 ? gradients : made);
      run.Free(made);
    }
    Optimize(run, 8, layer_bytes / 8);
    run.Free(gradients);
  }
  return run.Finish();
}

// Half of the layers belong to no optimizer: their gradients are made in the first step and never cleared.
SeededInput UnclearedGradients(int layers, std::uint64_t layer_bytes, int steps) {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  Model(run, 2 * layers, layer_bytes);
  for (int step = 0; step < steps; ++step) {
    Blocks saved;
    Blocks gradients;
    Blocks frozen;
    Forward(run, 2 * layers, layer_bytes / 4, saved);
    Backward(run, layers, layer_bytes, saved, gradients);
    Backward(run, layers, layer_bytes, saved, frozen);
    if (step > 0) run.Free(frozen);  // added to those that are there
    Optimize(run, layers, layer_bytes / 8);
    run.Free(gradients);
  }
  return run.Finish();
}

SeededInput Ranks(std::initializer_list<std::uint64_t> peaks) {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  Model(run, 8, 64 * kMiB);
  SeededInput out = run.Finish();
  int rank = 0;
  for (const std::uint64_t peak : peaks) out.ranks.push_back({rank++, peak, peak + kGiB});
  return out;
}

// Gradients are freed before the next pass, the optimizer's state is made in the first of many steps, its temporaries
// and the logits are small, and after every second step an evaluation keeps nothing.
SeededInput HealthyTraining(int layers, std::uint64_t layer_bytes, bool has_evaluation) {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  Model(run, layers, layer_bytes);
  for (int step = 0; step < 6; ++step) {
    Blocks saved;
    Blocks gradients;
    Forward(run, layers, step < 3 ? layer_bytes / 2 : layer_bytes, saved);
    run.At({{"functional.py", 3000, "cross_entropy"}, kMain});
    run.Free(run.Allocate(layer_bytes / 8));
    Backward(run, layers, layer_bytes, saved, gradients);
    run.At({{"torch/optim/adamw.py", 180, "_init_group"}, kMain});
    for (int i = 0; step == 0 && i < 2 * layers; ++i) run.Allocate(layer_bytes);
    run.Free(run.Allocate(layer_bytes));
    run.Free(gradients);
    for (int layer = 0; has_evaluation && step % 2 == 1 && layer < layers; ++layer) {
      run.At({{"model.py", 33, "forward"}, {"eval.py", 20, "evaluate"}, kMain});
      run.Free(run.Allocate(layer_bytes));
    }
  }
  return run.Finish();
}

// The checkpoint is read piece by piece.
SeededInput LoadedPieceByPiece() {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  Model(run, 24, 100 * kMiB);
  run.At({{"/lib/torch/serialization.py", 1800, "restore_location"}, {"train.py", 15, "resume"}, kMain});
  for (int layer = 0; layer < 24; ++layer) run.Free(run.Allocate(100 * kMiB));
  return run.Finish();
}

// What training cached cannot serve the longer sequences of the evaluation.
SeededInput CacheLeftOver(const char* evaluation, std::uint64_t train_bytes, std::uint64_t eval_bytes) {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  Model(run, 6, 32 * kMiB);
  for (int step = 0; step < 3; ++step) {
    Blocks saved;
    run.At({{"model.py", 40, "forward"}, kMain});
    for (int i = 0; i < 10; ++i) saved.push_back(run.Allocate(train_bytes));
    run.Free(saved);
  }
  for (int batch = 0; batch < 3; ++batch) {
    Blocks saved;
    run.At({{"model.py", 40, "forward"}, {"serve.py", 20, evaluation}, kMain});
    for (int i = 0; i < 6; ++i) saved.push_back(run.Allocate(eval_bytes));
    run.Free(saved);
  }
  return run.Finish();
}

}  // namespace

std::vector<HealthyCase> HealthyPrograms() {
  return {
      {"a whole training, 8 layers", [] { return HealthyTraining(8, 64 * kMiB, false); }},
      {"a whole training with evaluation", [] { return HealthyTraining(12, 100 * kMiB, true); }},
      {"checkpoint piece by piece", LoadedPieceByPiece},
      {"gradients of 2 micro-steps", [] { return MicroSteps(2, 64 * kMiB); }},
      {"gradients of 8 micro-steps", [] { return MicroSteps(8, 64 * kMiB); }},
      {"even ranks", [] { return Ranks({20 * kGiB, 20 * kGiB + 300 * kMiB, 20 * kGiB, 20 * kGiB}); }},
  };
}

std::vector<SeededCase> ProgramCases() {
  using analyses::CauseKind;
  return {
      {"logits of 1 GiB", CauseKind::kLogitsSpike, [] { return Logits(kGiB); }},
      {"logits of 400 MiB", CauseKind::kLogitsSpike, [] { return Logits(400 * kMiB); }},
      {"logits of 6 GiB", CauseKind::kLogitsSpike, [] { return Logits(6 * kGiB); }},
      {"logits of 2 GiB do not fit", CauseKind::kLogitsSpike, [] { return LogitsDoNotFit(2 * kGiB); }},
      {"state of 1 GiB does not fit", CauseKind::kOptimizerState, [] { return StateDoesNotFit(64 * kMiB); }},
      {"state of 6 GiB does not fit", CauseKind::kOptimizerState, [] { return StateDoesNotFit(384 * kMiB); }},
      {"state of 24 GiB does not fit", CauseKind::kOptimizerState, [] { return StateDoesNotFit(1536 * kMiB); }},
      {"foreach over 8 layers", CauseKind::kOptimizerTemporaries, [] { return Foreach(8, 64 * kMiB); }},
      {"foreach over 24 layers", CauseKind::kOptimizerTemporaries, [] { return Foreach(24, 100 * kMiB); }},
      {"foreach over 4 layers", CauseKind::kOptimizerTemporaries, [] { return Foreach(4, 700 * kMiB); }},
      {"graph of 8 steps", CauseKind::kGraphKeptAlive, [] { return GraphKept(8, 40 * kMiB); }},
      {"graph of 20 steps", CauseKind::kGraphKeptAlive, [] { return GraphKept(20, 24 * kMiB); }},
      {"graph of 12 large steps", CauseKind::kGraphKeptAlive, [] { return GraphKept(12, 300 * kMiB); }},
      {"evaluation with a graph, 8 layers", CauseKind::kEvalWithoutNoGrad, [] { return EvalWithGrad(8, 30 * kMiB); }},
      {"evaluation with a graph, 24 layers", CauseKind::kEvalWithoutNoGrad,
       [] { return EvalWithGrad(24, 100 * kMiB); }},
      {"evaluation with a graph, 4 layers", CauseKind::kEvalWithoutNoGrad, [] { return EvalWithGrad(4, 200 * kMiB); }},
      {"predictions of 10 batches", CauseKind::kEvalAccumulates, [] { return Predictions(10, 64 * kMiB); }},
      {"predictions of 50 batches", CauseKind::kEvalAccumulates, [] { return Predictions(50, 30 * kMiB); }},
      {"predictions of 6 batches", CauseKind::kEvalAccumulates, [] { return Predictions(6, 500 * kMiB); }},
      {"checkpoint on the device, 8 layers", CauseKind::kLoadedTwice, [] { return LoadedTwice(8, 64 * kMiB); }},
      {"checkpoint on the device, 24 layers", CauseKind::kLoadedTwice, [] { return LoadedTwice(24, 200 * kMiB); }},
      {"checkpoint on the device, 4 layers", CauseKind::kLoadedTwice, [] { return LoadedTwice(4, 800 * kMiB); }},
      {"gradients of 8 layers", CauseKind::kGradientsKept, [] { return UnclearedGradients(8, 64 * kMiB, 6); }},
      {"gradients of 4 layers", CauseKind::kGradientsKept, [] { return UnclearedGradients(4, 400 * kMiB, 8); }},
      {"gradients of 12 layers", CauseKind::kGradientsKept, [] { return UnclearedGradients(12, 128 * kMiB, 12); }},
      {"one of 4 ranks", CauseKind::kRankImbalance, [] { return Ranks({10 * kGiB, 10 * kGiB, 10 * kGiB, 14 * kGiB}); }},
      {"the first stage", CauseKind::kRankImbalance, [] { return Ranks({30 * kGiB, 20 * kGiB, 21 * kGiB}); }},
      {"6 % of 40 GiB", CauseKind::kRankImbalance, [] { return Ranks({40 * kGiB, 42600 * kMiB + 2 * kGiB}); }},
      {"training, then evaluation", CauseKind::kCacheBetweenPhases,
       [] { return CacheLeftOver("evaluate", 30 * kMiB, 100 * kMiB); }},
      {"training, then generation", CauseKind::kCacheBetweenPhases,
       [] { return CacheLeftOver("generate", 120 * kMiB, 300 * kMiB); }},
      {"training, then validation", CauseKind::kCacheBetweenPhases,
       [] { return CacheLeftOver("validate", 200 * kMiB, 900 * kMiB); }},
  };
}

}  // namespace ashlar::tests
