// The parts of a training that the cases of causes put together: a model, a pass forward, a backward pass, an update.
#ifndef ASHLAR_TESTS_ANALYZER_ANALYSES_CAUSES_TRAINING_PARTS_H_
#define ASHLAR_TESTS_ANALYZER_ANALYSES_CAUSES_TRAINING_PARTS_H_

#include <cstdint>
#include <vector>

#include "tests/analyzer/analyses/seeded_run.h"

namespace ashlar::tests {

using Blocks = std::vector<core::Block*>;

inline constexpr SeededFrame kMain = {"train.py", 60, "main"};
inline constexpr SeededFrame kEngine = {"??", 0,
                                        "torch::autograd::Engine::thread_main(std::shared_ptr<GraphTask> const&)"};

inline constexpr SeededFrame kCall = {"/lib/torch/nn/modules/module.py", 1794, "_call_impl"};
inline constexpr SeededFrame kInner = {"/lib/torch/nn/modules/module.py", 1850, "inner"};

inline void Model(SeededRun& run, int layers, std::uint64_t layer_bytes) {
  run.At({{"model.py", 12, "__init__"}, kMain});
  for (int layer = 0; layer < layers; ++layer) run.Allocate(layer_bytes);
}

inline void Forward(SeededRun& run, int layers, std::uint64_t bytes, Blocks& saved) {
  for (int layer = 0; layer < layers; ++layer) {
    run.At({{"model.py", 40, "attention"}, {"model.py", 33, "forward"}, kMain});
    saved.push_back(run.Allocate(bytes));
    run.At({{"model.py", 44, "mlp"}, {"model.py", 33, "forward"}, kMain});
    saved.push_back(run.Allocate(bytes * 2));
  }
}

inline void Backward(SeededRun& run, int layers, std::uint64_t layer_bytes, Blocks& saved, Blocks& gradients) {
  for (int layer = 0; layer < layers; ++layer) {
    run.At({kEngine});
    gradients.push_back(run.Allocate(layer_bytes));
    for (int i = 0; i < 2 && !saved.empty(); ++i) {
      run.Free(saved.back());
      saved.pop_back();
    }
  }
}

inline void Optimize(SeededRun& run, int layers, std::uint64_t layer_bytes) {
  run.At({{"torch/optim/adamw.py", 400, "_single_tensor_adamw"}, kMain});
  for (int layer = 0; layer < layers; ++layer) run.Free(run.Allocate(layer_bytes));
}

// A whole step: `between` runs after the pass forward, with nothing of it freed.
template <typename Between>
void Step(SeededRun& run, int layers, std::uint64_t bytes, std::uint64_t layer_bytes, Between between) {
  Blocks saved;
  Blocks gradients;
  Forward(run, layers, bytes, saved);
  between();
  Backward(run, layers, layer_bytes, saved, gradients);
  Optimize(run, layers, layer_bytes);
  run.Free(gradients);
}

inline void Step(SeededRun& run, int layers, std::uint64_t bytes, std::uint64_t layer_bytes) {
  Step(run, layers, bytes, layer_bytes, [] {});
}

}  // namespace ashlar::tests

#endif  // ASHLAR_TESTS_ANALYZER_ANALYSES_CAUSES_TRAINING_PARTS_H_
