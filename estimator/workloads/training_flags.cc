#include "estimator/workloads/training_flags.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace ashlar::kernels {

ParameterOptions ParameterOptionsOf(const Flags& flags) {
  const std::string& freeze = flags.Text("freeze");
  if (freeze.empty()) return {};
  return {.frozen = absl::StrSplit(freeze, ',')};
}

TrainingOptions TrainingOptionsOf(Flags& flags) {
  TrainingOptions out;
  out.accumulation = flags.Int("accumulation", 1, 1 << 20);
  const std::string& precision = flags.Text("precision");
  if (precision == "fp16") {
    out.autocast = DType::kFloat16;
  } else if (precision == "bf16") {
    out.autocast = DType::kBFloat16;
  } else if (precision != "fp32") {
    flags.Fail(absl::InvalidArgumentError(absl::StrCat("--precision '", precision, "' is none of fp32, fp16, bf16")));
  }
  out.optimizer = flags.Text("optimizer");
  out.optimizer_options.learning_rate = flags.Real("learning-rate", 0, 1000);
  out.clip_norm = flags.Real("clip-norm", 0, 1e9);
  return out;
}

absl::Status RunTraining(const Parameters& parameters, Flags& flags, const Training::Loss& loss,
                         const OnProgress& on_progress) {
  const std::int64_t steps = flags.Int("steps", 0, 1'000'000'000);
  const TrainingOptions options = TrainingOptionsOf(flags);
  if (!flags.status().ok()) return flags.status();
  if (const absl::Status frozen = parameters.CheckFrozen(); !frozen.ok()) {
    return absl::Status(frozen.code(), absl::StrCat("--freeze: ", frozen.message()));
  }
  Training training(parameters, options);
  return training.Run(steps, loss,
                      [&](std::int64_t step, std::optional<double> value) { on_progress({step, steps, value}); });
}

}  // namespace ashlar::kernels
