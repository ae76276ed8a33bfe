// The training loop that workloads share: what a Hugging Face Trainer of the model's time does between two batches.
//
//   Training training(context, parameters, {.accumulation = 4, .autocast = DType::kFloat16, .optimizer = "adamw-hf"});
//   absl::Status status = training.Run(3, [&] { return model.Loss(NextBatch()); });
//
// A step: `accumulation` micro-batches forward and backward, gradients unscaled and clipped, the optimizer, gradients
// zeroed. Out of memory ends it: the status is the memory's, whose failure() says where.
#ifndef ASHLAR_KERNELS_WORKLOADS_TRAINING_H_
#define ASHLAR_KERNELS_WORKLOADS_TRAINING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kernels/nn/parameters.h"
#include "kernels/optim/gradient_norm.h"
#include "kernels/optim/optimizer.h"

namespace ashlar::kernels {

struct TrainingOptions {
  std::int64_t accumulation = 1;
  std::optional<DType> autocast = {};  // float16 with a gradient scaler, bfloat16 without
  std::string optimizer = "adamw";
  OptimizerOptions optimizer_options = {};
  double clip_norm = 1;                            // 0: not clipped
  std::function<void()> after_backward = nullptr;  // of each micro-batch: its inputs end here
};

class Training {
 public:
  // The parameters outlive it. An unknown optimizer is the first Run's error.
  Training(const Parameters& parameters, TrainingOptions options);

  // `loss` makes a batch and returns its loss; it is called within the autocast scope. `after_step` is told the step
  // (from 1) and, where there is arithmetic, its mean loss.
  using Loss = std::function<Tensor()>;
  using AfterStep = std::function<void(std::int64_t step, std::optional<double> loss)>;
  absl::Status Run(std::int64_t steps, const Loss& loss, const AfterStep& after_step = nullptr);

 private:
  std::optional<double> Accumulate(const Loss& loss);
  void Update();

  const Parameters& parameters_;
  Context& context_;
  TrainingOptions options_;
  std::unique_ptr<Optimizer> optimizer_;
  absl::Status status_;
  GradientScaler scaler_;
  Tensor last_loss_;  // the caller's variable, alive until the next one
};

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_WORKLOADS_TRAINING_H_
