#include "kernels/optim/sgd.h"

#include "kernels/tensor/python_list.h"

namespace ashlar::kernels {

Sgd::Sgd(const Parameters& parameters, const OptimizerOptions& options) : parameters_(parameters), options_(options) {
  for (const Parameter& parameter : parameters.all()) states_.push_back({&parameter});
}

void Sgd::Step() {
  Context& context = parameters_.context();
  const NoGrad no_grad(context);
  const bool is_foreach = context.framework().optimizers_are_foreach;
  const auto decayed_of = [&](const State& state) {  // the gradient + decay * the parameter
    const Tensor grad = state.parameter->tensor.grad();
    if (options_.weight_decay == 0 || !grad.defined()) return Tensor();
    context.memory().set_owner(state.parameter->name);
    return EmptyLike(grad);
  };
  std::vector<Tensor> decayed;
  context.memory().set_tensor("decayed gradient");
  if (is_foreach) {
    for (const State& state : states_) decayed.push_back(decayed_of(state));
  }
  for (State& state : states_) {
    if (!state.parameter->tensor.grad().defined()) continue;
    context.memory().set_owner(state.parameter->name);
    const Tensor temporary = is_foreach ? Tensor() : decayed_of(state);
    Update(state);
  }
  EndList(decayed);
  context.memory().set_owner({});
  context.memory().set_tensor({});
}

void Sgd::Update(State& state) {
  Context& context = parameters_.context();
  const Tensor& parameter = state.parameter->tensor;
  const bool is_first = options_.momentum != 0 && !state.momentum.defined();
  if (is_first) {
    state.momentum = EmptyLike(parameter);
    state.momentum.set_part(Part::kOptimizer);
  }
  if (!context.computes()) return;
  ops::SgdTensor one{parameter.view(), parameter.grad().view(), {}};
  if (state.momentum.defined()) one.momentum = state.momentum.view();
  context.Do(ops::Sgd{
      {&one, 1}, options_.learning_rate, options_.momentum, options_.weight_decay, /*is_nesterov=*/false, is_first});
}

}  // namespace ashlar::kernels
