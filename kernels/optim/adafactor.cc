#include "kernels/optim/adafactor.h"

#include <cmath>

#include "kernels/optim/gradient_norm.h"

namespace ashlar::kernels {
namespace {

// A mean over one dim: its result, and the kernel's buffers for the call.
Tensor MeanOver(const Tensor& x, std::size_t dim) {
  Dims kept = x.sizes();
  kept[dim] = 1;
  Tensor out = Empty(x.context(), {ops::ElementCount(kept)}, DType::kFloat32);
  HoldScratchOf(x, kept);
  return out;
}

// rms(x): the norm's scalar and what becomes of it are single floats.
Tensor RootMeanSquare(const Tensor& x) {
  Tensor norm = Empty(x.context(), {}, DType::kFloat32);
  HoldScratchOf(x, Dims(x.sizes().size(), 1));
  return EmptyLike(norm);
}

}  // namespace

Adafactor::Adafactor(const Parameters& parameters, const OptimizerOptions& options)
    : parameters_(parameters), options_(options) {
  for (const Turn& turn : TurnsOf(parameters, options.weight_decay)) states_.push_back({turn});
}

void Adafactor::Step() {
  Context& context = parameters_.context();
  const NoGrad no_grad(context);
  ++step_;
  Tensor update;
  for (State& state : states_) StepOfOne(state, update);
  update.reset();
  context.memory().set_owner({});
  context.memory().set_tensor({});
}

void Adafactor::MakeStates(State& state) {
  const Tensor& parameter = state.turn.parameter->tensor;
  if (state.row.defined() || state.second.defined()) return;
  const Dims& sizes = parameter.sizes();
  const auto zeros = [&](Dims of) {
    return Zeros(parameter.context(), std::move(of), DType::kFloat32, Part::kOptimizer);
  };
  if (sizes.size() < 2) {
    state.second = zeros(sizes);
    return;
  }
  state.row = zeros({sizes[0]});
  state.column = zeros({sizes[1]});
}

void Adafactor::StepOfOne(State& state, Tensor& update) {
  const Tensor& parameter = state.turn.parameter->tensor;
  const Tensor grad = parameter.grad();
  if (!grad.defined()) return;
  Context& context = parameters_.context();
  Memory& memory = context.memory();
  memory.set_owner(state.turn.parameter->name);
  memory.set_tensor("factored state");
  MakeStates(state);
  const Tensor of_parameter = RootMeanSquare(parameter);

  memory.set_tensor("squared gradient");
  Tensor square = EmptyLike(grad);
  Tensor shifted = EmptyLike(grad);
  square.reset();
  update = std::move(shifted);
  memory.set_tensor("update");
  if (state.row.defined()) {
    Tensor mean = MeanOver(update, 1);
    mean = MeanOver(update, 0);
    mean.reset();
    const Tensor row_factor = EmptyLike(state.row);
    const Tensor column_factor = EmptyLike(state.column);
    Tensor product = EmptyLike(update);
    update = std::move(product);
  } else {
    update = EmptyLike(update);
  }
  const Tensor of_update = RootMeanSquare(update);
  const Tensor negated = EmptyLike(update);
  if (!context.computes()) return;
  ops::Adafactor op{parameter.view(), grad.view(), {}, {}, {}};
  if (state.row.defined()) {
    op.row = state.row.view();
    op.column = state.column.view();
  } else {
    op.second = state.second.view();
  }
  op.learning_rate = options_.learning_rate;
  op.beta2 = 1 - std::pow(static_cast<double>(step_), -0.8);
  op.weight_decay = state.turn.weight_decay;
  op.is_scaled = false;
  context.Do(op);
}

}  // namespace ashlar::kernels
