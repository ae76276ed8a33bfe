// The AdamW of Stanford's CS336 assignments, in plain Python: every expression makes a tensor, fresh zeros are made for
// both states at every step even when there are some, and results replace the old states.
#ifndef ASHLAR_KERNELS_OPTIM_TEACHING_ADAMW_H_
#define ASHLAR_KERNELS_OPTIM_TEACHING_ADAMW_H_

#include <cstdint>
#include <vector>

#include "kernels/optim/optimizer.h"

namespace ashlar::kernels {

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

#endif  // ASHLAR_KERNELS_OPTIM_TEACHING_ADAMW_H_
