// Optimizers by what they allocate: their states, and the temporaries of a step. Which temporaries, when states appear,
// and what a loop variable holds into the next turn follow the Python sources named at each kind.
//
//   absl::StatusOr<std::unique_ptr<Optimizer>> optimizer = MakeOptimizer("adamw", parameters, {.learning_rate = 1e-4});
//   optimizer->Step();
//
// Parameters without a gradient are left out. Arithmetic, where there is some, is that of kernels/ops/optimizer.h.
#ifndef ASHLAR_KERNELS_OPTIM_OPTIMIZER_H_
#define ASHLAR_KERNELS_OPTIM_OPTIMIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/nn/parameters.h"

namespace ashlar::kernels {

struct OptimizerOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double momentum = 0;
  double weight_decay = 0.01;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual void Step() = 0;
};

// A parameter's turn: those that decay come first, biases and norms (one dim) after them without decay.
struct Turn {
  const Parameter* parameter;
  double weight_decay;
};
std::vector<Turn> TurnsOf(const Parameters& parameters, double weight_decay);
// The same as PyTorch's two parameter groups, either of which may be empty. Its optimizers run one after the other: the
// states of a group that are not there yet, then its update, whose temporaries end with it.
std::vector<std::vector<Turn>> GroupsOf(const Parameters& parameters, double weight_decay);

// "adamw-hf" (transformers 4.1x), "adamw" (torch; a loop or foreach, by the framework), "adamw-loop", "adamw-foreach",
// "adamw-fused", "sgd", "adafactor" (transformers 4.1x), "adafactor-torch" (from PyTorch 2.5), "adamw-8bit"
// (bitsandbytes 0.26), "adamw-teaching". The parameters outlive it. Errors list the names.
absl::StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(absl::string_view name, const Parameters& parameters,
                                                         const OptimizerOptions& options);

// SGD of PyTorch (torch/optim/sgd.py): no state without momentum; weight decay makes a tensor a parameter, in lists
// with foreach; the first momentum buffer is a copy of the gradient.
class Sgd final : public Optimizer {
 public:
  Sgd(const Parameters& parameters, const OptimizerOptions& options);
  void Step() override;

 private:
  struct State {
    const Parameter* parameter;
    Tensor momentum = {};
  };
  void Update(State& state);

  const Parameters& parameters_;
  OptimizerOptions options_;
  std::vector<State> states_;
};

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_OPTIM_OPTIMIZER_H_
