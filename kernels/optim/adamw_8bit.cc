#include "kernels/optim/adamw_8bit.h"

#include "kernels/tensor/shape.h"

namespace ashlar::kernels {
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
    context.Do(ops::AdamW{{&one, 1},
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
  context.Do(ops::AdamW8Bit{{&one, 1},
                            options_.learning_rate,
                            options_.beta1,
                            options_.beta2,
                            options_.epsilon,
                            state.turn.weight_decay,
                            step_});
}

}  // namespace ashlar::kernels
