// Block-wise 8-bit AdamW of bitsandbytes 0.26 (optim/optimizer.py): a byte an element for each state and a float for
// each block of 2048; tensors of fewer than 4096 elements keep float states; two maps of 256 floats for all. No
// temporaries.
#ifndef ASHLAR_KERNELS_OPTIM_ADAMW_8BIT_H_
#define ASHLAR_KERNELS_OPTIM_ADAMW_8BIT_H_

#include <vector>

#include "kernels/optim/optimizer.h"

namespace ashlar::kernels {

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

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_OPTIM_ADAMW_8BIT_H_
