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

absl::StatusOr<kernels::Transformers> VersionsFor(const DryRunOptions& options) {
  return kernels::TransformersFor(options.torch_version, options.transformers_version);
}

std::optional<kernels::Attention> DefaultAttention(const Model& model, const DryRunOptions& options) {
  const absl::StatusOr<kernels::Transformers> versions = VersionsFor(options);
  if (!versions.ok() || (!IsDecoder(model) && !IsEncoder(model))) return std::nullopt;
  bool has_fused = false;
  if (std::holds_alternative<LlamaProgramConfig>(model.program)) has_fused = versions->prefers_sdpa;
  if (std::holds_alternative<Gpt2ProgramConfig>(model.program)) has_fused = versions->gpt2_has_sdpa;
  if (std::holds_alternative<DistilBertProgramConfig>(model.program)) has_fused = versions->distilbert_has_sdpa;
  if (const auto* bert = std::get_if<BertProgramConfig>(&model.program)) {
    has_fused = bert->padding_id.has_value() ? versions->roberta_has_sdpa : versions->bert_has_sdpa;
  }
  return has_fused ? kernels::Attention::kSdpa : kernels::Attention::kEager;
}

bool IsTrainedByMean(const Model& model) {
  return std::visit(
      [](const auto& config) {
        using Config = std::decay_t<decltype(config)>;
        if constexpr (std::is_same_v<Config, BertProgramConfig> || std::is_same_v<Config, DistilBertProgramConfig>) {
          return config.head.task == kernels::EncoderTask::kNone;
        } else if constexpr (std::is_same_v<Config, T5ProgramConfig>) {
          return config.head != kernels::T5Head::kLanguage;
        } else if constexpr (std::is_same_v<Config, std::monostate> ||
                             std::is_same_v<Config, kernels::TabFormerConfig>) {
          return false;
        } else {
          return config.head == kernels::DecoderHead::kNone;
        }
      },
      model.program);
}

kernels::Tensor MaskOf(kernels::Context& context, const BatchShape& shape) {
  if (!shape.is_padded) return {};
  return kernels::Empty(context, {shape.batch, shape.tokens}, kernels::DType::kInt64, kernels::Part::kBatch);
}

std::string WhyNoFlash(const DryRunOptions& options) {
  if (options.attention != kernels::Attention::kFlash) return {};
  if (options.precision == Precision::kFloat32) {
    return "FlashAttention has no fp32: give --precision bf16, fp16, bf16-pure or fp16-pure, or --attention sdpa or "
           "eager";
  }
  const absl::StatusOr<kernels::Transformers> versions = VersionsFor(options);
  if (versions.ok() && !versions->has_flash) {
    return absl::StrCat("transformers of torch ", options.torch_version,
                        " had no FlashAttention 2: give --attention eager, or --torch 2.1 or later");
  }
  const absl::StatusOr<kernels::Gpu> gpu = kernels::GpuNamed(options.gpu);
  if (!gpu.ok() || gpu->compute_capability >= 80) return {};
  return absl::StrCat("FlashAttention 2 does not run on a ", gpu->name, ": give --attention sdpa or eager");
}

std::string WhyNoProgram(const Model& model, const DryRunOptions& options) {
  const std::string what = model.architecture.empty() ? "a list of parameters" : model.architecture;
  if (!std::holds_alternative<std::monostate>(model.program) && !IsDecoder(model)) {
    if (IsPure(options.precision) && !IsEncoder(model))
      return absl::StrCat("no dry run for ", what, " in pure half precision yet");
    const bool is_t5 = std::holds_alternative<T5ProgramConfig>(model.program);
    if (!IsEncoder(model) && !is_t5 &&
        options.attention.value_or(kernels::Attention::kEager) != kernels::Attention::kEager) {
      return absl::StrCat("no dry run for ", what, " with ", kernels::AttentionName(*options.attention),
                          " attention yet: --attention eager has one");
    }
  }
  if (IsPure(options.precision) && options.is_training && options.optimizer == "adafactor") {
    return "no dry run of adafactor in pure half precision yet, which makes float copies of its own";
  }
  if (IsPure(options.precision) && options.switches.has_host_embeddings) {
    return "no dry run of embeddings on the host in pure half precision yet";
  }
  if (options.is_padded && model.tokens_a_sample.has_value()) {
    return absl::StrCat("no padded batches of ", model.family, ", whose samples are all of one length");
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
