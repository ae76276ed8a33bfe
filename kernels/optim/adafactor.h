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

// PyTorch's own Adafactor (torch/optim/_adafactor.py, from 2.5 on), in its default form, group by group and in it
// one parameter at a time: the group's states first; means of squares by norms, without a squared gradient; one tensor
// of a parameter's size, which is the estimate and then the update. Python's locals hold the last turn's until the next
// one's exist or the group ends.
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

#endif  // ASHLAR_KERNELS_OPTIM_ADAFACTOR_H_
