// AdamW as transformers 4.1x and PyTorch run it: one parameter at a time, in lists (foreach), or fused.
#ifndef ASHLAR_KERNELS_OPTIM_ADAMW_H_
#define ASHLAR_KERNELS_OPTIM_ADAMW_H_

#include <vector>

#include "kernels/optim/optimizer.h"

namespace ashlar::kernels {

enum class AdamWKind : std::uint8_t {
  kHuggingFace,  // transformers/optimization.py: states in the loop, one temporary, the last one still held
  kLoop,         // torch/optim/adamw.py: a group's states first, then sqrt and quotient a parameter
  kForeach,      // the same in lists over all parameters of the group
  kFused,        // no temporary; the step is a scalar on the device for each parameter
};

class AdamW final : public Optimizer {
 public:
  AdamW(AdamWKind kind, const Parameters& parameters, const OptimizerOptions& options);
  void Step() override;

 private:
  struct State {
    Turn turn;
    Tensor first = {}, second = {}, device_step = {};
  };
  using Group = std::vector<State>;
  void MakeStates(State& state);
  void StepOfOne(State& state, Tensor& held);
  void StepOfList(const Group& group);
  void Update(const State& state);

  AdamWKind kind_;
  const Parameters& parameters_;
  OptimizerOptions options_;
  std::vector<Group> groups_;
  std::int64_t step_ = 0;
};

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_OPTIM_ADAMW_H_
