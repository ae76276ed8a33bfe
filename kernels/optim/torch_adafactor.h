// PyTorch's own Adafactor (torch/optim/_adafactor.py, from 2.5 on), in its default form, group by group and in it
// one parameter at a time: the group's states first; means of squares by norms, without a squared gradient; one tensor
// of a parameter's size, which is the estimate and then the update. Python's locals hold the last turn's until the next
// one's exist or the group ends.
#ifndef ASHLAR_KERNELS_OPTIM_TORCH_ADAFACTOR_H_
#define ASHLAR_KERNELS_OPTIM_TORCH_ADAFACTOR_H_

#include <vector>

#include "kernels/optim/optimizer.h"

namespace ashlar::kernels {

class TorchAdafactor final : public Optimizer {
 public:
  TorchAdafactor(const Parameters& parameters, const OptimizerOptions& options);
  void Step() override;

 private:
  struct State {
    Turn turn;
    Tensor row = {}, column = {}, second = {};  // (R, 1) and (1, C) of a matrix, else the variance
  };
  struct Locals {
    Tensor row_mean = {}, column_mean = {}, squared = {}, update = {};
  };
  void MakeStates(State& state);
  void StepOfOne(const State& state, Locals& locals);
  void Update(const State& state);

  const Parameters& parameters_;
  OptimizerOptions options_;
  std::vector<std::vector<State>> groups_;
  std::int64_t step_ = 0;
};

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_OPTIM_TORCH_ADAFACTOR_H_
