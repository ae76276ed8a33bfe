#include "analyzer/answers/explain.h"

#include <utility>

namespace ashlar::answers {
namespace {

using Explanations = std::vector<Explanation>;

absl::StatusOr<Explanations> OneOf(absl::StatusOr<Explanation> explanation) {
  if (!explanation.ok()) return explanation.status();
  return Explanations{*std::move(explanation)};
}

}  // namespace

absl::StatusOr<Explanations> Explain(const Input& input, const ExplainOptions& options) {
  if (input.snapshot() != nullptr) return OneOf(ExplainSnapshot(*input.snapshot(), options));
  if (input.requests() != nullptr) return OneOf(ExplainRequests(*input.requests(), options));
  if (input.messages() != nullptr) return ExplainMessages(*input.messages(), options);
  return absl::InvalidArgumentError("a packing problem has nothing to explain");
}

absl::StatusOr<Explanations> ExplainBytes(absl::string_view bytes, const ExplainOptions& options) {
  const absl::StatusOr<Input> input = LoadInput(bytes, ExplainedInputs());
  if (!input.ok()) return input.status();
  return Explain(*input, options);
}

}  // namespace ashlar::answers
