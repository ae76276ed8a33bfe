// Counts the bytes of a model's weights, gradients and optimizer states, from names and shapes alone.
//
// Sources of the optimizers' rules: kernels/optim (AdamW, 8-bit AdamW of bitsandbytes 0.26, Adafactor of transformers
// 4.x, SGD). Bytes are of requests, before the allocator rounds.
#ifndef ASHLAR_ESTIMATOR_MODEL_STATES_H_
#define ASHLAR_ESTIMATOR_MODEL_STATES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "estimator/model.h"

namespace ashlar::estimate {

// Mixed (autocast): float32 weights and a 16-bit copy of them, float32 gradients.
// Pure: the model itself is 16-bit, with gradients and states.
enum class Precision : std::uint8_t { kFloat32, kFloat16Mixed, kBFloat16Mixed, kFloat16Pure, kBFloat16Pure };
absl::string_view PrecisionName(Precision precision);  // "fp32", "fp16", "bf16", "fp16-pure", "bf16-pure"
// Errors list the names.
absl::StatusOr<Precision> ParsePrecision(absl::string_view name);
constexpr bool IsMixed(Precision precision) {
  return precision == Precision::kFloat16Mixed || precision == Precision::kBFloat16Mixed;
}
constexpr bool IsPure(Precision precision) {
  return precision == Precision::kFloat16Pure || precision == Precision::kBFloat16Pure;
}

struct ModelStates {
  std::string optimizer;  // empty: inference
  Precision precision = Precision::kFloat32;
  std::uint64_t weights_bytes = 0;
  std::uint64_t gradients_bytes = 0;
  std::uint64_t optimizer_bytes = 0;

  std::uint64_t total() const { return weights_bytes + gradients_bytes + optimizer_bytes; }
};

// The optimizers that are known, as kernels::MakeOptimizer names them, and "sgd-momentum".
const std::vector<absl::string_view>& OptimizerNames();
// Errors list them.
absl::Status CheckOptimizer(absl::string_view name);

ModelStates InferenceStates(const Model& model, Precision precision);
// `block`: elements of an 8-bit state that share a scale (kernels::Framework::optimizer_block).
ModelStates TrainingStates(const Model& model, Precision precision, absl::string_view optimizer,
                           std::int64_t block = 2048);

// What people compute by hand: 4 bytes x 4 x parameters + 4 bytes x tokens x batch + 2 GiB.
std::uint64_t RuleOfThumb(const Model& model, std::int64_t batch, std::int64_t tokens_a_sample);

}  // namespace ashlar::estimate

#endif  // ASHLAR_ESTIMATOR_MODEL_STATES_H_
