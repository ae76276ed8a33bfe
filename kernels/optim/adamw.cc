#include "kernels/optim/adamw.h"

#include <cmath>
#include <utility>

#include "kernels/autograd/pointwise.h"
#include "kernels/tensor/shape.h"
#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

AdamW::AdamW(AdamWKind kind, const Parameters& parameters, const OptimizerOptions& options)
    : kind_(kind), parameters_(parameters), options_(options) {
  for (const std::vector<Turn>& turns : GroupsOf(parameters, options.weight_decay)) {
    Group& group = groups_.emplace_back();
    for (const Turn& turn : turns) group.push_back({turn});
  }
}

void AdamW::Step() {
  Context& context = parameters_.context();
  TensorMemory& memory = context.memory();
  const NoGrad no_grad(context);
  ++step_;
  Tensor held;  // the loop's temporary, alive until the next one exists
  for (Group& group : groups_) {
    if (kind_ != AdamWKind::kHuggingFace) {
      for (State& state : group) MakeStates(state);
    }
    if (kind_ == AdamWKind::kForeach || kind_ == AdamWKind::kFused) {
      StepOfList(group);
    } else {
      for (State& state : group) StepOfOne(state, held);
    }
    // PyTorch's loop is in a function that is called for each group, transformers' is in step itself.
    if (kind_ != AdamWKind::kHuggingFace) held.reset();
  }
  memory.set_owner({});
  memory.set_tensor({});
}

void AdamW::MakeStates(State& state) {
  const Tensor& parameter = state.turn.parameter->tensor;
  if (state.first.defined() || !parameter.grad().defined()) return;
  TensorMemory& memory = parameters_.context().memory();
  memory.set_owner(state.turn.parameter->name);
  if (kind_ == AdamWKind::kFused) {
    state.device_step = Zeros(parameters_.context(), {}, DType::kFloat32, Part::kOptimizer);
  }
  memory.set_tensor("exp_avg");
  state.first = ZerosLike(parameter);
  state.first.set_part(Part::kOptimizer);
  memory.set_tensor("exp_avg_sq");
  state.second = ZerosLike(parameter);
  state.second.set_part(Part::kOptimizer);
}

void AdamW::StepOfOne(State& state, Tensor& held) {
  if (!state.turn.parameter->tensor.grad().defined()) return;
  MakeStates(state);
  TensorMemory& memory = parameters_.context().memory();
  memory.set_owner(state.turn.parameter->name);
  memory.set_tensor("sqrt(exp_avg_sq)");
  Tensor root = EmptyLike(state.second);
  if (kind_ == AdamWKind::kHuggingFace) {
    held = std::move(root);
  } else {  // sqrt / correction, then + epsilon in place
    memory.set_tensor("denominator");
    Tensor quotient = EmptyLike(root);
    root.reset();
    held = std::move(quotient);
  }
  Update(state);
}

// The root is part of the update's op; its tensor is allocated all the same.
void AdamW::Update(const State& state) {
  Context& context = parameters_.context();
  if (!context.computes()) return;
  const Tensor& parameter = state.turn.parameter->tensor;
  const ops::AdamWTensor one{parameter.view(), parameter.grad().view(), state.first.view(), state.second.view()};
  context.Do(ops::AdamWStep{{&one, 1},
                            options_.learning_rate,
                            options_.beta1,
                            options_.beta2,
                            options_.epsilon,
                            state.turn.weight_decay,
                            step_,
                            {}});
}

void AdamW::StepOfList(const Group& group) {
  TensorMemory& memory = parameters_.context().memory();
  const int lists = kind_ == AdamWKind::kForeach ? parameters_.context().framework().foreach_adamw_lists : 0;
  std::vector<std::vector<Tensor>> temporaries(static_cast<std::size_t>(lists));
  memory.set_tensor("sqrt(exp_avg_sq), of a group");
  for (std::vector<Tensor>& list : temporaries) {
    for (const State& state : group) {
      if (!state.second.defined()) continue;
      memory.set_owner(state.turn.parameter->name);
      list.push_back(EmptyLike(state.second));
    }
  }
  for (const State& state : group) {
    if (state.turn.parameter->tensor.grad().defined()) Update(state);
  }
  for (std::vector<Tensor>& list : temporaries) EndList(list);
}

namespace {

constexpr std::int64_t kFewest = 4096;  // elements of a tensor whose states are 8 bits wide
constexpr std::int64_t kMapEntries = 256;
constexpr double kSignedZero = 127, kUnsignedZero = 0;  // the codes of 0 in the two maps

// As many scales as the op has blocks: where there is arithmetic these stay as wide as bitsandbytes 0.26 had them.
ops::View ScalesOf(const Tensor& scale, std::int64_t elements) {
  ops::View out = scale.view();
  out.sizes = {DivideUp(elements, ops::kBlock8Bit)};
  return out;
}

}  // namespace

AdamW8Bit::AdamW8Bit(const Parameters& parameters, const OptimizerOptions& options)
    : parameters_(parameters), options_(options) {
  for (const Turn& turn : TurnsOf(parameters, options.weight_decay)) states_.push_back({turn});
}

void AdamW8Bit::Step() {
  Context& context = parameters_.context();
  const NoGrad no_grad(context);
  ++step_;
  for (State& state : states_) {
    if (!state.turn.parameter->tensor.grad().defined()) continue;
    context.memory().set_owner(state.turn.parameter->name);
    context.memory().set_tensor("8-bit state");
    MakeStates(state);
    Update(state);
  }
  context.memory().set_owner({});
  context.memory().set_tensor({});
}

void AdamW8Bit::MakeStates(State& state) {
  if (state.first.defined()) return;
  Context& context = parameters_.context();
  const Tensor& parameter = state.turn.parameter->tensor;
  const std::int64_t n = parameter.elements();
  const auto make = [&](Dims sizes, DType dtype, double value) {
    Tensor out = Empty(context, std::move(sizes), dtype, Part::kOptimizer);
    if (context.computes()) context.Do(ops::Fill{out.view(), value});
    return out;
  };
  if (n < kFewest) {
    state.first = make(parameter.sizes(), DType::kFloat32, 0);
    state.second = make(parameter.sizes(), DType::kFloat32, 0);
    return;
  }
  if (!signed_map_.defined()) {
    signed_map_ = make({kMapEntries}, DType::kFloat32, 0);
    unsigned_map_ = make({kMapEntries}, DType::kFloat32, 0);
  }
  const std::int64_t blocks = DivideUp(n, context.framework().optimizer_block);
  state.first = make(parameter.sizes(), DType::kUint8, kSignedZero);
  state.second = make(parameter.sizes(), DType::kUint8, kUnsignedZero);
  state.first_scale = make({blocks}, DType::kFloat32, 0);
  state.second_scale = make({blocks}, DType::kFloat32, 0);
}

void AdamW8Bit::Update(const State& state) {
  Context& context = parameters_.context();
  if (!context.computes()) return;
  const Tensor& parameter = state.turn.parameter->tensor;
  const Tensor grad = parameter.grad();
  if (!state.first_scale.defined()) {
    const ops::AdamWTensor one{parameter.view(), grad.view(), state.first.view(), state.second.view()};
    context.Do(ops::AdamWStep{{&one, 1},
                              options_.learning_rate,
                              options_.beta1,
                              options_.beta2,
                              options_.epsilon,
                              state.turn.weight_decay,
                              step_,
                              {}});
    return;
  }
  const std::int64_t n = parameter.elements();
  const ops::AdamW8BitTensor one{parameter.view(),    grad.view(),
                                 state.first.view(),  ScalesOf(state.first_scale, n),
                                 state.second.view(), ScalesOf(state.second_scale, n)};
  context.Do(ops::AdamW8BitStep{{&one, 1},
                                options_.learning_rate,
                                options_.beta1,
                                options_.beta2,
                                options_.epsilon,
                                state.turn.weight_decay,
                                step_});
}

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
  TensorMemory& memory = context.memory();
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
