#include "kernels/optim/optimizer.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/optim/adafactor.h"
#include "kernels/optim/adamw.h"
#include "kernels/optim/adamw_8bit.h"
#include "kernels/optim/sgd.h"
#include "kernels/optim/teaching_adamw.h"
#include "kernels/optim/torch_adafactor.h"

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

}  // namespace ashlar::kernels
