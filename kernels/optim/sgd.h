// SGD of PyTorch (torch/optim/sgd.py): no state without momentum; weight decay makes a tensor a parameter, in lists
// with foreach; the first momentum buffer is a copy of the gradient.
#ifndef ASHLAR_KERNELS_OPTIM_SGD_H_
#define ASHLAR_KERNELS_OPTIM_SGD_H_

#include <vector>

#include "kernels/optim/optimizer.h"

namespace ashlar::kernels {

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

#endif  // ASHLAR_KERNELS_OPTIM_SGD_H_
