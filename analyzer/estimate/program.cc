#include "analyzer/estimate/program.h"

#include <type_traits>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

namespace ashlar::estimate {
namespace {

// `of` the description of the program, `none` where there is none.
template <typename T, typename Of>
T OfProgram(const Model& model, T none, const Of& of) {
  return std::visit(
      [&](const auto& config) -> T {
        if constexpr (std::is_same_v<std::decay_t<decltype(config)>, std::monostate>) {
          return std::move(none);
        } else {
          return of(config);
        }
      },
      model.program);
}

bool IsEncoder(const Model& model) {
  return std::holds_alternative<BertProgramConfig>(model.program) ||
         std::holds_alternative<DistilBertProgramConfig>(model.program);
}

// What runs in every precision and with each attention.
bool IsDecoder(const Model& model) {
  return std::holds_alternative<LlamaProgramConfig>(model.program) ||
         std::holds_alternative<Gpt2ProgramConfig>(model.program) ||
         std::holds_alternative<GptNeoProgramConfig>(model.program);
}

}  // namespace

std::optional<kernels::Attention> DefaultAttention(const Model& model, const DryRunOptions& options) {
  const absl::StatusOr<kernels::Transformers> versions = kernels::TransformersFor(options.torch_version);
  if (!versions.ok() || (!IsDecoder(model) && !IsEncoder(model))) return std::nullopt;
  bool has_fused = false;
  if (std::holds_alternative<LlamaProgramConfig>(model.program)) has_fused = versions->prefers_sdpa;
  if (std::holds_alternative<Gpt2ProgramConfig>(model.program)) has_fused = versions->gpt2_has_sdpa;
  if (std::holds_alternative<DistilBertProgramConfig>(model.program)) has_fused = versions->roberta_has_sdpa;
  if (const auto* bert = std::get_if<BertProgramConfig>(&model.program)) {
    has_fused = bert->padding_id.has_value() ? versions->roberta_has_sdpa : versions->bert_has_sdpa;
  }
  return has_fused ? kernels::Attention::kSdpa : kernels::Attention::kEager;
}

std::string WhyNoProgram(const Model& model, const DryRunOptions& options) {
  const std::string what = model.architecture.empty() ? "a list of parameters" : model.architecture;
  if (!std::holds_alternative<std::monostate>(model.program) && !IsDecoder(model)) {
    if (IsPure(options.precision)) return absl::StrCat("no dry run for ", what, " in pure half precision yet");
    if (!IsEncoder(model) && options.attention.value_or(kernels::Attention::kEager) != kernels::Attention::kEager) {
      return absl::StrCat("no dry run for ", what, " with ", kernels::AttentionName(*options.attention),
                          " attention yet: --attention eager has one");
    }
  }
  return OfProgram(model,
                   absl::StrCat("no dry run for ", what, " yet: printed from parameters only, without activations"),
                   [&](const auto& config) { return WhyNoProgramOf(config, options); });
}

std::unique_ptr<Program> MakeProgram(kernels::Parameters& parameters, const Model& model,
                                     const DryRunOptions& options) {
  return OfProgram(model, std::unique_ptr<Program>(),
                   [&](const auto& config) { return MakeProgramOf(config, parameters, options); });
}

double WidestTensor(const Model& model, const DryRunOptions& options) {
  return OfProgram(model, 0.0, [&](const auto& config) { return WidestTensorOf(config, options); });
}

}  // namespace ashlar::estimate
