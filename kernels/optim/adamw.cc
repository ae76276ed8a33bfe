#include "kernels/optim/adamw.h"

#include <utility>

#include "kernels/tensor/python_list.h"

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
  Memory& memory = context.memory();
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
  Memory& memory = parameters_.context().memory();
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
  Memory& memory = parameters_.context().memory();
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
  context.Do(ops::AdamW{{&one, 1},
                        options_.learning_rate,
                        options_.beta1,
                        options_.beta2,
                        options_.epsilon,
                        state.turn.weight_decay,
                        step_,
                        {}});
}

void AdamW::StepOfList(const Group& group) {
  Memory& memory = parameters_.context().memory();
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

}  // namespace ashlar::kernels
