#include "kernels/workloads/training.h"

#include <utility>

#include "kernels/autograd/engine.h"
#include "kernels/autograd/pointwise.h"

namespace ashlar::kernels {
namespace {

constexpr double kFirstScale = 65'536;  // GradScaler's

float ValueOf(const Tensor& scalar) {
  float value = 0;
  scalar.context().CopyBytes(&value, scalar.view().data, sizeof(value));
  return value;
}

}  // namespace

Training::Training(const Parameters& parameters, TrainingOptions options)
    : parameters_(parameters),
      context_(parameters.context()),
      options_(std::move(options)),
      scaler_(context_, kFirstScale) {
  absl::StatusOr<std::unique_ptr<Optimizer>> optimizer =
      MakeOptimizer(options_.optimizer, parameters, options_.optimizer_options);
  if (optimizer.ok()) {
    optimizer_ = *std::move(optimizer);
  } else {
    status_ = optimizer.status();
  }
}

absl::Status Training::Run(std::int64_t steps, const Loss& loss, const AfterStep& after_step) {
  if (!status_.ok()) return status_;
  for (std::int64_t step = 1; step <= steps; ++step) {
    const std::optional<double> value = Accumulate(loss);
    Update();
    if (!context_.memory().ok()) return context_.memory().status();
    if (after_step) after_step(step, value);
  }
  return absl::OkStatus();
}

std::optional<double> Training::Accumulate(const Loss& loss_of) {
  std::optional<double> sum;
  for (std::int64_t i = 0; i < options_.accumulation; ++i) {
    context_.memory().set_phase("forward");
    Tensor loss;
    {
      const Autocast autocast(context_, options_.autocast.has_value(), options_.autocast.value_or(DType::kFloat16));
      loss = loss_of();
    }
    if (!context_.memory().ok()) return std::nullopt;
    if (options_.accumulation > 1) loss = DivScalar(loss, static_cast<double>(options_.accumulation));
    if (context_.computes()) sum = sum.value_or(0) + static_cast<double>(ValueOf(loss));
    context_.memory().set_phase("backward");
    if (options_.autocast == DType::kFloat16) {
      const Tensor scaled = scaler_.Scale(loss);
      Backward(scaled);
    } else {
      Backward(loss);
    }
    last_loss_ = Detach(loss);
    if (options_.after_backward) options_.after_backward();
  }
  return sum;
}

void Training::Update() {
  if (!context_.memory().ok()) return;
  context_.memory().set_phase("optimizer step");
  const bool is_finite = options_.autocast != DType::kFloat16 || scaler_.Unscale(parameters_);
  if (options_.clip_norm > 0) ClipGradientNorm(parameters_, options_.clip_norm);
  if (is_finite) optimizer_->Step();
  if (options_.autocast == DType::kFloat16) scaler_.Update();
  context_.memory().set_phase("between steps");
  ZeroGradients(parameters_);
}

}  // namespace ashlar::kernels
