// Adafactor of transformers 4.1x (optimization.py): row and column means for matrices, a full state for vectors; two
// tensors of a parameter's size at a time, and the last update held into the next turn.
#ifndef ASHLAR_KERNELS_OPTIM_ADAFACTOR_H_
#define ASHLAR_KERNELS_OPTIM_ADAFACTOR_H_

#include <vector>

#include "kernels/optim/optimizer.h"

namespace ashlar::kernels {

class Adafactor final : public Optimizer {
 public:
  Adafactor(const Parameters& parameters, const OptimizerOptions& options);
  void Step() override;

 private:
  struct State {
    Turn turn;
    Tensor row = {}, column = {}, second = {};
  };
  void MakeStates(State& state);
  void StepOfOne(State& state, Tensor& update);

  const Parameters& parameters_;
  OptimizerOptions options_;
  std::vector<State> states_;
  std::int64_t step_ = 0;
};

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_OPTIM_ADAFACTOR_H_
