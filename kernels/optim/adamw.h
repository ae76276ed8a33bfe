// AdamW as transformers 4.1x and PyTorch run it: one parameter at a time, in lists (foreach), or fused.
#ifndef ASHLAR_KERNELS_OPTIM_ADAMW_H_
#define ASHLAR_KERNELS_OPTIM_ADAMW_H_

#include <cstdint>
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

// Block-wise 8-bit AdamW of bitsandbytes 0.26 (optim/optimizer.py): a byte an element for each state and a float for
// each block of 2048; tensors of fewer than 4096 elements keep float states; two maps of 256 floats for all. No
// temporaries.
class AdamW8Bit final : public Optimizer {
 public:
  AdamW8Bit(const Parameters& parameters, const OptimizerOptions& options);
  void Step() override;

 private:
  struct State {
    Turn turn;
    Tensor first = {}, first_scale = {}, second = {}, second_scale = {};
  };
  void MakeStates(State& state);
  void Update(const State& state);

  const Parameters& parameters_;
  OptimizerOptions options_;
  Tensor signed_map_, unsigned_map_;
  std::vector<State> states_;
  std::int64_t step_ = 0;
};

// The AdamW of Stanford's CS336 assignments, in plain Python: every expression makes a tensor, fresh zeros are made for
// both states at every step even when there are some, and results replace the old states.
class TeachingAdamW final : public Optimizer {
 public:
  TeachingAdamW(const Parameters& parameters, const OptimizerOptions& options);
  void Step() override;

 private:
  struct State {
    Tensor first, second;
    std::int64_t step = 1;
  };
  const Parameters& parameters_;
  OptimizerOptions options_;
  std::vector<State> states_;
};

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_OPTIM_ADAMW_H_
