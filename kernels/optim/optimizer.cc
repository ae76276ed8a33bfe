#include "kernels/optim/optimizer.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/optim/adafactor.h"
#include "kernels/optim/adamw.h"
#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

std::vector<std::vector<Turn>> GroupsOf(const Parameters& parameters, double weight_decay) {
  std::vector<std::vector<Turn>> out(2);
  for (const Parameter& parameter : parameters.all()) {
    const bool decays = parameter.tensor.rank() > 1 && !absl::StrContains(parameter.name, "bias");
    out[decays ? 0 : 1].push_back({&parameter, decays ? weight_decay : 0});
  }
  return out;
}

std::vector<Turn> TurnsOf(const Parameters& parameters, double weight_decay) {
  std::vector<Turn> out;
  for (const std::vector<Turn>& group : GroupsOf(parameters, weight_decay)) {
    out.insert(out.end(), group.begin(), group.end());
  }
  return out;
}

absl::StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(absl::string_view name, const Parameters& parameters,
                                                         const OptimizerOptions& options) {
  const auto adamw = [&](AdamWKind kind) { return std::make_unique<AdamW>(kind, parameters, options); };
  const bool is_foreach = parameters.context().framework().optimizers_are_foreach;
  if (name == "adamw") return adamw(is_foreach ? AdamWKind::kForeach : AdamWKind::kLoop);
  if (name == "adamw-hf") return adamw(AdamWKind::kHuggingFace);
  if (name == "adamw-loop") return adamw(AdamWKind::kLoop);
  if (name == "adamw-foreach") return adamw(AdamWKind::kForeach);
  if (name == "adamw-fused") return adamw(AdamWKind::kFused);
  if (name == "adamw-8bit") return std::make_unique<AdamW8Bit>(parameters, options);
  if (name == "adamw-teaching") return std::make_unique<TeachingAdamW>(parameters, options);
  if (name == "adafactor") return std::make_unique<Adafactor>(parameters, options);
  if (name == "adafactor-torch") {
    if (parameters.context().framework().has_adafactor) return std::make_unique<TorchAdafactor>(parameters, options);
    return absl::InvalidArgumentError("adafactor-torch: PyTorch has an Adafactor of its own from 2.5 on");
  }
  if (name == "sgd") return std::make_unique<Sgd>(parameters, options);
  return absl::InvalidArgumentError(absl::StrCat("there is no optimizer '", name,
                                                 "': adamw, adamw-hf, adamw-loop, adamw-foreach, adamw-fused, ",
                                                 "adamw-8bit, adamw-teaching, adafactor, adafactor-torch, sgd"));
}

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
  context.Do(ops::SgdStep{
      {&one, 1}, options_.learning_rate, options_.momentum, options_.weight_decay, /*is_nesterov=*/false, is_first});
}

}  // namespace ashlar::kernels
