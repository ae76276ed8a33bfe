#include "estimator/model_states.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "allocator/base/units.h"

namespace ashlar::estimate {
namespace {

constexpr std::uint64_t kFloat = 4, kHalf = 2;
constexpr std::uint64_t kSmallest8Bit = 4096;  // elements; bitsandbytes

std::uint64_t ElementBytes(Precision precision) { return IsPure(precision) ? kHalf : kFloat; }
std::uint64_t Elements(const ModelParameter& parameter) { return static_cast<std::uint64_t>(parameter.count()); }

std::uint64_t AdamW8BitBytes(std::uint64_t elements, std::uint64_t block) {
  if (elements < kSmallest8Bit) return 2 * kFloat * elements;
  return 2 * (elements + kFloat * ((elements + block - 1) / block));
}

// A mean for each row and each column of a matrix, over the last two dims.
std::uint64_t AdafactorBytes(const ModelParameter& parameter) {
  const std::uint64_t elements = Elements(parameter);
  if (parameter.sizes.size() < 2 || elements == 0) return kFloat * elements;
  const auto columns = static_cast<std::uint64_t>(parameter.sizes.back());
  const auto rows = static_cast<std::uint64_t>(parameter.sizes[parameter.sizes.size() - 2]);
  return kFloat * (elements / columns + elements / rows);
}

// `element` is a parameter's size; Adafactor and the 8-bit states are what they are for any.
std::uint64_t StateBytes(const ModelParameter& parameter, absl::string_view optimizer, std::uint64_t element,
                         std::uint64_t block) {
  if (optimizer == "sgd") return 0;
  if (optimizer == "sgd-momentum") return element * Elements(parameter);
  if (optimizer == "adafactor") return AdafactorBytes(parameter);
  if (optimizer == "adamw-8bit") return AdamW8BitBytes(Elements(parameter), block);
  return 2 * element * Elements(parameter);
}

}  // namespace

absl::string_view PrecisionName(Precision precision) {
  constexpr absl::string_view kNames[] = {"fp32", "fp16", "bf16", "fp16-pure", "bf16-pure"};
  return kNames[static_cast<std::size_t>(precision)];
}

absl::StatusOr<Precision> ParsePrecision(absl::string_view name) {
  for (const Precision precision : {Precision::kFloat32, Precision::kFloat16Mixed, Precision::kBFloat16Mixed,
                                    Precision::kFloat16Pure, Precision::kBFloat16Pure}) {
    if (name == PrecisionName(precision)) return precision;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", name, "' is none of fp32, fp16, bf16 (autocast), fp16-pure, bf16-pure"));
}

const std::vector<absl::string_view>& OptimizerNames() {
  static const auto* const kNames =
      new std::vector<absl::string_view>{"adamw",      "adamw-hf",  "adamw-loop", "adamw-foreach", "adamw-fused",
                                         "adamw-8bit", "adafactor", "sgd",        "sgd-momentum"};
  return *kNames;
}

absl::Status CheckOptimizer(absl::string_view name) {
  const std::vector<absl::string_view>& names = OptimizerNames();
  if (std::find(names.begin(), names.end(), name) != names.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("'", name, "' is none of ", absl::StrJoin(names, ", ")));
}

ModelStates InferenceStates(const Model& model, Precision precision) {
  ModelStates out;
  out.precision = precision;
  const std::uint64_t copies = IsMixed(precision) ? kHalf : 0;
  for (const ModelParameter& parameter : model.parameters) {
    if (!parameter.is_on_host) out.weights_bytes += Elements(parameter) * (ElementBytes(precision) + copies);
  }
  return out;
}

ModelStates TrainingStates(const Model& model, Precision precision, absl::string_view optimizer, std::int64_t block) {
  ModelStates out = InferenceStates(model, precision);
  out.optimizer = std::string(optimizer);
  for (const ModelParameter& parameter : model.parameters) {
    if (!parameter.is_trained_on_device()) continue;
    out.gradients_bytes += ElementBytes(precision) * Elements(parameter);
    out.optimizer_bytes += StateBytes(parameter, optimizer, ElementBytes(precision), static_cast<std::uint64_t>(block));
  }
  return out;
}

std::uint64_t RuleOfThumb(const Model& model, std::int64_t batch, std::int64_t tokens_a_sample) {
  return 16 * static_cast<std::uint64_t>(model.count()) +
         kFloat * static_cast<std::uint64_t>(batch) * static_cast<std::uint64_t>(tokens_a_sample) + 2 * kGiB;
}

}  // namespace ashlar::estimate
