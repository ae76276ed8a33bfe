// Programs whose memory is what they are made of: activations, scores of attention, copies of weights, huge tensors;
// and a limit of the process.
#include "tests/analyzer/analyses/causes/cause_cases.h"

namespace ashlar::tests {
namespace {

using Blocks = std::vector<core::Block*>;

constexpr SeededFrame kScript = {"train.py", 60, "main"};
constexpr SeededFrame kToDevice = {"/lib/torch/nn/modules/module.py", 1300, "convert"};
constexpr SeededFrame kAutograd = {"??", 0, "torch::autograd::Engine::thread_main(std::shared_ptr<GraphTask> const&)"};
constexpr SeededFrame kCheckpoint = {"/lib/torch/utils/checkpoint.py", 490, "checkpoint"};

// A decoder as wide as `width` fp32 numbers; each layer has its own sizes of weights, and norms of the width.
struct Shape {
  std::uint64_t layers = 6, width = 1024, batch = 4, length = 512;
  std::uint64_t mlp = 4;     // times the width
  std::uint64_t biases = 0;  // of a layer, as wide as its norms, with one of the first part of its MLP
  std::uint64_t RowsBytes() const { return batch * length * width * 4; }
  std::uint64_t ScoreBytes() const { return batch * (width / 64) * length * length * 4; }
};

// Weights of an embedding, of each layer and of a head; `bytes_each` of a number.
Blocks Weights(SeededRun& run, const Shape& shape, std::uint64_t bytes_each = 4, SeededFrame how = kToDevice) {
  run.At({how, {"train.py", 12, "build"}, kScript});
  Blocks out = {run.Allocate(8192 * shape.width * bytes_each)};
  for (std::uint64_t layer = 0; layer < shape.layers; ++layer) {
    for (const std::uint64_t rows : {std::uint64_t{1}, 3 * shape.width, shape.width, std::uint64_t{1},
                                     shape.mlp * shape.width, shape.mlp * shape.width}) {
      out.push_back(run.Allocate(rows * shape.width * bytes_each));
    }
    for (std::uint64_t i = 0; i < shape.biases; ++i) out.push_back(run.Allocate(shape.width * bytes_each));
    if (shape.biases > 0) out.push_back(run.Allocate(shape.mlp * shape.width * bytes_each));
  }
  out.push_back(run.Allocate(10'240 * shape.width * bytes_each));
  return out;
}

void PassOf(SeededRun& run, const Shape& shape, bool has_scores, Blocks& saved, bool is_checkpointed = false) {
  for (std::uint64_t layer = 0; layer < shape.layers; ++layer) {
    const SeededFrame outer = is_checkpointed ? kCheckpoint : kScript;
    int line = 30;
    for (const std::uint64_t widths : {std::uint64_t{1}, std::uint64_t{3}, std::uint64_t{1}, shape.mlp, shape.mlp}) {
      run.At({{"model.py", ++line, "forward"}, outer});
      saved.push_back(run.Allocate(widths * shape.RowsBytes()));
    }
    run.At({{"model.py", 40, "forward"}, outer});
    if (has_scores) saved.push_back(run.Allocate(shape.ScoreBytes()));
  }
}

void BackwardOf(SeededRun& run, const Blocks& weights, Blocks& saved, Blocks& gradients) {
  run.At({kAutograd});
  for (const core::Block* const weight : weights) {
    if (weight != nullptr) gradients.push_back(run.Allocate(weight->size_bytes));
    if (saved.empty()) continue;
    run.Free(saved.back());
    saved.pop_back();
  }
  run.Free(saved);
}

// Steps that fit, by plain descent, which keeps no state.
void Train(SeededRun& run, const Shape& shape, const Blocks& weights, int steps, bool has_scores = false) {
  for (int step = 0; step < steps; ++step) {
    Blocks saved;
    Blocks gradients;
    PassOf(run, shape, has_scores, saved);
    BackwardOf(run, weights, saved, gradients);
    run.Free(gradients);
  }
}

std::uint64_t WeightBytes(const Shape& shape) {
  return (18'432 + shape.layers * (12 * shape.width + 2)) * shape.width * 4;
}

// The pass fails in its later half, in the first step or after `steps` of shorter texts.
SeededInput PassDoesNotFit(Shape shape, bool has_scores, int steps) {
  const std::uint64_t pass =
      shape.layers * ((5 + 2 * shape.mlp) * shape.RowsBytes() + (has_scores ? shape.ScoreBytes() : 0));
  SeededRun run({.capacity_bytes = WeightBytes(shape) + pass * 3 / 4});
  const Blocks weights = Weights(run, shape);
  Shape shorter = shape;
  shorter.length = shape.length / 4;
  Train(run, shorter, weights, steps, has_scores);
  run.EmptyCache();
  Blocks saved;
  PassOf(run, shape, has_scores, saved);
  return run.Finish();
}

// A model in training beside further sets of its weights.
SeededInput CopiesBeside(Shape shape, int copies, std::uint64_t bytes_each, int steps) {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  const Blocks weights = Weights(run, shape);
  for (int i = 0; i < copies; ++i) Weights(run, shape, bytes_each, {"train.py", 14, "build"});
  Train(run, shape, weights, steps);
  return run.Finish();
}

// Nothing was trained yet when it fails; the copies say themselves what they are.
SeededInput DeepCopiesDoNotFit(Shape shape, int copies) {
  SeededRun run({.capacity_bytes = WeightBytes(shape) * static_cast<std::uint64_t>(copies + 1) + 200 * kMiB});
  Weights(run, shape);
  for (int i = 0; i < copies; ++i) Weights(run, shape, 4, {"/lib/torch/_tensor.py", 180, "__deepcopy__"});
  Blocks saved;
  PassOf(run, shape, false, saved);
  return run.Finish();
}

// Two models that are trained in turns, as the two nets of an adversarial training are.
SeededInput TwoTrainedModels(Shape shape) {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  Blocks weights = Weights(run, shape);
  const Blocks others = Weights(run, shape);
  weights.insert(weights.end(), others.begin(), others.end());
  Train(run, shape, weights, 4);
  return run.Finish();
}

SeededInput HugeTensor(Shape shape, std::uint64_t tensor_bytes, int tensors) {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  run.At({{"train.py", 9, "load"}, kScript});
  for (int i = 0; i < tensors; ++i) run.Allocate(tensor_bytes);
  Train(run, shape, Weights(run, shape), 4);
  return run.Finish();
}

// The second pass finds no room beside it.
SeededInput HugeTensorBesideAPass(Shape shape, std::uint64_t tensor_bytes) {
  SeededRun run({.capacity_bytes = tensor_bytes + 4 * WeightBytes(shape) + 400 * kMiB});
  run.At({{"train.py", 9, "load"}, kScript});
  run.Allocate(tensor_bytes);
  Train(run, shape, Weights(run, shape), 1);
  Blocks saved;
  shape.length *= 4;
  PassOf(run, shape, false, saved);
  return run.Finish();
}

// Half of the device may be had.
SeededInput Limited(Shape shape, const char* fraction) {
  SeededRun run({.conf = std::string("per_process_memory_fraction:") + fraction, .capacity_bytes = 4 * kGiB});
  Weights(run, shape);
  Blocks saved;
  while (!run.is_out_of_memory()) PassOf(run, shape, false, saved);
  return run.Finish();
}

// The pass is checkpointed and small: inputs of layers alone are kept.
SeededInput Checkpointed(Shape shape) {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  const Blocks weights = Weights(run, shape);
  for (int step = 0; step < 4; ++step) {
    Blocks saved;
    Blocks gradients;
    PassOf(run, shape, false, saved, /*is_checkpointed=*/true);
    BackwardOf(run, weights, saved, gradients);
    run.Free(gradients);
  }
  return run.Finish();
}

}  // namespace

std::vector<HealthyCase> HealthyMemory() {
  return {
      {"a pass of scores that fits",
       [] {
         SeededRun run({.capacity_bytes = 80 * kGiB});
         const Shape shape;
         Train(run, shape, Weights(run, shape), 4, /*has_scores=*/true);
         return run.Finish();
       }},
      {"a small moving average", [] { return CopiesBeside({.batch = 32}, 1, 4, 4); }},
      {"two trained models", [] { return TwoTrainedModels({}); }},
      {"a checkpointed pass", [] { return Checkpointed({}); }},
      {"a data set that is little", [] { return HugeTensor({.batch = 8}, 300 * kMiB, 1); }},
  };
}

std::vector<SeededCase> MemoryCases() {
  using analyses::CauseKind;
  return {
      {"the first pass does not fit", CauseKind::kActivationsSaved, [] { return PassDoesNotFit({}, false, 0); }},
      {"a longer pass does not fit", CauseKind::kActivationsSaved,
       [] { return PassDoesNotFit({.length = 1024}, false, 3); }},
      {"a wide pass does not fit", CauseKind::kActivationsSaved,
       [] { return PassDoesNotFit({.layers = 4, .width = 2048, .batch = 8}, false, 0); }},
      {"scores of 2,048 places", CauseKind::kAttentionScores,
       [] { return PassDoesNotFit({.width = 768, .batch = 1, .length = 2048}, true, 0); }},
      {"scores beside an MLP of twice the width", CauseKind::kAttentionScores,
       [] { return PassDoesNotFit({.width = 512, .batch = 1, .length = 4096, .mlp = 2, .biases = 5}, true, 0); }},
      {"scores of longer texts", CauseKind::kAttentionScores,
       [] { return PassDoesNotFit({.batch = 2, .length = 2048}, true, 3); }},
      {"scores of 4,096 places", CauseKind::kAttentionScores,
       [] { return PassDoesNotFit({.layers = 4, .batch = 1, .length = 4096}, true, 0); }},
      {"a moving average", CauseKind::kModelCopies, [] { return CopiesBeside({.batch = 1, .length = 128}, 1, 4, 4); }},
      {"three frozen models", CauseKind::kModelCopies,
       [] { return CopiesBeside({.layers = 8, .batch = 1, .length = 128}, 3, 4, 4); }},
      {"masters of twice the precision", CauseKind::kModelCopies,
       [] { return CopiesBeside({.batch = 1, .length = 128}, 1, 8, 4); }},
      {"deep copies that do not fit", CauseKind::kModelCopies, [] { return DeepCopiesDoNotFit({}, 2); }},
      {"a data set of 6 GiB", CauseKind::kLongLivedTensor, [] { return HugeTensor({}, 6 * kGiB, 1); }},
      {"two tables of 2 GiB", CauseKind::kLongLivedTensor, [] { return HugeTensor({}, 2 * kGiB, 2); }},
      {"three banks of 1 GiB", CauseKind::kLongLivedTensor, [] { return HugeTensor({.batch = 1}, kGiB, 3); }},
      {"a data set beside a pass", CauseKind::kLongLivedTensor, [] { return HugeTensorBesideAPass({}, 6 * kGiB); }},
      {"half of the device", CauseKind::kMemoryFraction, [] { return Limited({}, "0.5"); }},
      {"a quarter of the device", CauseKind::kMemoryFraction, [] { return Limited({}, "0.25"); }},
      {"a third of the device", CauseKind::kMemoryFraction, [] { return Limited({.layers = 4}, "0.33"); }},
  };
}

}  // namespace ashlar::tests
