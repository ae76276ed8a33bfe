#include "kernels/optim/adafactor.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/autograd/pointwise.h"
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
  TensorMemory& memory = context.memory();
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
  ops::AdafactorStep op{parameter.view(), grad.view(), {}, {}, {}};
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

namespace {

constexpr double kBeta2Decay = -0.8;

// A norm or mean over all but the dims that stay: its result, and the kernel's buffers for the call.
Tensor MeanOverRest(const Tensor& x, const Dims& kept) {
  Tensor out = Empty(x.context(), kept, DType::kFloat32);
  HoldScratchOf(x, kept);
  return out;
}

// A contiguous tensor as the op takes it: without the dim of size 1.
ops::View AsVector(const Tensor& x) {
  ops::View out = x.view();
  out.sizes = {x.elements()};
  out.strides = {1};
  return out;
}

Tensor ReducedToOne(const Tensor& x) { return MeanOverRest(x, Dims(x.sizes().size(), 1)); }

}  // namespace

TorchAdafactor::TorchAdafactor(const Parameters& parameters, const OptimizerOptions& options)
    : parameters_(parameters), options_(options) {
  for (const std::vector<Turn>& turns : GroupsOf(parameters, options.weight_decay)) {
    std::vector<State>& group = groups_.emplace_back();
    for (const Turn& turn : turns) group.push_back({turn});
  }
}

void TorchAdafactor::Step() {
  Context& context = parameters_.context();
  const NoGrad no_grad(context);
  ++step_;
  for (std::vector<State>& group : groups_) {
    context.memory().set_tensor("factored state");
    for (State& state : group) MakeStates(state);
    Locals locals;
    for (const State& state : group) {
      if (state.turn.parameter->tensor.grad().defined()) StepOfOne(state, locals);
    }
    Release(locals.row_mean, locals.column_mean, locals.squared, locals.update);
  }
  context.memory().set_owner({});
  context.memory().set_tensor({});
}

void TorchAdafactor::MakeStates(State& state) {
  const Tensor& parameter = state.turn.parameter->tensor;
  if (state.row.defined() || state.second.defined() || !parameter.grad().defined()) return;
  Context& context = parameters_.context();
  context.memory().set_owner(state.turn.parameter->name);
  const auto zeros = [&](Dims sizes) { return Zeros(context, std::move(sizes), DType::kFloat32, Part::kOptimizer); };
  if (parameter.rank() != 2) {
    state.second = zeros(parameter.sizes());
    return;
  }
  state.row = zeros({parameter.size(0), 1});
  state.column = zeros({1, parameter.size(1)});
}

void TorchAdafactor::StepOfOne(const State& state, Locals& locals) {
  Context& context = parameters_.context();
  TensorMemory& memory = context.memory();
  const Tensor& parameter = state.turn.parameter->tensor;
  const Tensor grad = parameter.grad();
  memory.set_owner(state.turn.parameter->name);
  memory.set_tensor("norm");
  ReducedToOne(parameter).reset();
  Tensor estimate;
  if (state.row.defined()) {
    memory.set_tensor("means of squares");
    locals.row_mean = MeanOverRest(grad, {grad.size(0), 1});
    locals.column_mean = MeanOverRest(grad, {1, grad.size(1)});
    memory.set_tensor("row x column");
    estimate = EmptyLike(grad);
    context.NeedProductWorkspace();
    ReducedToOne(state.row).reset();
  } else {
    memory.set_tensor("squared gradient");
    locals.squared = EmptyLike(grad);
    estimate = EmptyLike(grad);
  }
  locals.update = std::move(estimate);  // the same tensor, from here on in place
  ReducedToOne(locals.update).reset();
  Update(state);
}

void TorchAdafactor::Update(const State& state) {
  Context& context = parameters_.context();
  if (!context.computes()) return;
  const Tensor& parameter = state.turn.parameter->tensor;
  const auto step = static_cast<double>(step_);
  MulInPlace(parameter, 1 - options_.learning_rate * state.turn.weight_decay);
  ops::AdafactorStep op{parameter.view(), parameter.grad().view(), {}, {}, {}};
  if (state.row.defined()) {
    op.row = AsVector(state.row);
    op.column = AsVector(state.column);
  } else {
    op.second = state.second.view();
  }
  op.learning_rate = std::min(options_.learning_rate, 1 / std::sqrt(step));
  op.beta2 = 1 - std::pow(step, kBeta2Decay);
  context.Do(op);
}

}  // namespace ashlar::kernels
