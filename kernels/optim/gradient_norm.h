// Clipping by the norm of all gradients (torch/nn/utils/clip_grad.py), and the loss scaling of mixed precision
// (torch/cuda/amp/grad_scaler.py): a scalar a parameter and a few more, no tensor of a gradient's size. From 2.0 on the
// norms are made in lists: as many floats for each gradient as the largest has chunks of 65,536 elements.
#ifndef ASHLAR_KERNELS_OPTIM_GRADIENT_NORM_H_
#define ASHLAR_KERNELS_OPTIM_GRADIENT_NORM_H_

#include "kernels/nn/parameters.h"

namespace ashlar::kernels {

void ClipGradientNorm(const Parameters& parameters, double most);

// Allocates and frees what the reduction kernel holds while it reduces `x` to `kept`.
void HoldScratchOf(const Tensor& x, const Dims& kept);

class GradientScaler {
 public:
  explicit GradientScaler(Context& context, double scale) : context_(context), scale_(scale) {}
  // loss * scale, with its graph.
  Tensor Scale(const Tensor& loss);
  // Gradients / scale in place, before clipping and the step. False where one is not finite: no step then.
  bool Unscale(const Parameters& parameters);
  // After the step: the scale is halved where a gradient was not finite, and doubled after 2,000 steps without one.
  void Update();

 private:
  Context& context_;
  double scale_;
  std::int64_t finite_steps_ = 0;
  bool is_finite_ = true;
  Tensor device_scale_, growth_;
  Tensor found_;  // from Unscale to Update
};

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_OPTIM_GRADIENT_NORM_H_
