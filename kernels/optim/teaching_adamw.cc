#include "kernels/optim/teaching_adamw.h"

#include <cmath>

#include "kernels/autograd/pointwise.h"

namespace ashlar::kernels {
namespace {

// a * x + b * y, each product a tensor.
Tensor Blend(double a, const Tensor& x, double b, const Tensor& y) {
  Tensor left = MulScalar(x, a), right = MulScalar(y, b);
  Tensor out = Add(left, right);
  Release(left, right);
  return out;
}

// The same for b * y^2.
Tensor BlendSquare(double a, const Tensor& x, double b, const Tensor& y) {
  Tensor left = MulScalar(x, a), square = Square(y);
  Tensor right = MulScalar(square, b);
  square.reset();
  Tensor out = Add(left, right);
  Release(left, right);
  return out;
}

}  // namespace

TeachingAdamW::TeachingAdamW(const Parameters& parameters, const OptimizerOptions& options)
    : parameters_(parameters), options_(options), states_(parameters.all().size()) {}

void TeachingAdamW::Step() {
  Context& context = parameters_.context();
  Memory& memory = context.memory();
  const NoGrad no_grad(context);
  Tensor previous_first, previous_second, first, second;  // locals of the loop, alive until rebound
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const Parameter& parameter = parameters_.all()[i];
    const Tensor grad = parameter.tensor.grad();
    if (!grad.defined()) continue;
    State& state = states_[i];
    memory.set_owner(parameter.name);

    memory.set_tensor("weight decay");
    {
      const Tensor decay = MulScalar(parameter.tensor, options_.learning_rate * options_.weight_decay);
      AddInPlace(parameter.tensor, decay, -1);
    }
    memory.set_tensor("zeros for the states");
    {
      Tensor zeros = ZerosLike(grad);
      if (state.first.defined()) zeros = state.first;
      previous_first = zeros;
      zeros.reset();
      zeros = ZerosLike(grad);
      if (state.second.defined()) zeros = state.second;
      previous_second = zeros;
    }
    memory.set_tensor("exp_avg");
    first = Blend(options_.beta1, previous_first, 1 - options_.beta1, grad);
    memory.set_tensor("exp_avg_sq");
    second = BlendSquare(options_.beta2, previous_second, 1 - options_.beta2, grad);
    memory.set_tensor("update");
    const auto t = static_cast<double>(state.step);
    const double rate =
        options_.learning_rate * std::sqrt(1 - std::pow(options_.beta2, t)) / (1 - std::pow(options_.beta1, t));
    Tensor scaled = MulScalar(first, rate);
    Tensor root = Unary(ops::UnaryKind::kSqrt, second);
    Tensor divisor = AddScalar(root, options_.epsilon);
    root.reset();
    Tensor update = Div(scaled, divisor);
    Release(scaled, divisor);
    AddInPlace(parameter.tensor, update, -1);
    update.reset();
    state.first = first;
    state.second = second;
    state.first.set_part(Part::kOptimizer);
    state.second.set_part(Part::kOptimizer);
    ++state.step;
  }
  Release(previous_first, previous_second, first, second);
  memory.set_owner({});
  memory.set_tensor({});
}

}  // namespace ashlar::kernels
