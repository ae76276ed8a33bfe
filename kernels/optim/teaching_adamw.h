// The AdamW of Stanford's CS336 assignments, in plain Python: every expression makes a tensor, fresh zeros are made for
// both states at every step even when there are some, and results replace the old states.
#ifndef ASHLAR_KERNELS_OPTIM_TEACHING_ADAMW_H_
#define ASHLAR_KERNELS_OPTIM_TEACHING_ADAMW_H_

#include <cstdint>
#include <vector>

#include "kernels/nn/parameters.h"

namespace ashlar::kernels {

class TeachingAdamW {
 public:
  struct Options {
    double learning_rate = 1e-3;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
    double weight_decay = 0.01;
  };
  // The parameters outlive it.
  TeachingAdamW(const Parameters& parameters, Options options);
  void Step();

 private:
  struct State {
    Tensor first, second;
    std::int64_t step = 1;
  };
  const Parameters& parameters_;
  Options options_;
  std::vector<State> states_;
};

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_OPTIM_TEACHING_ADAMW_H_
