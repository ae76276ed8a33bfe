#include "estimator/program.h"

#include "absl/strings/str_cat.h"

namespace ashlar::estimate {

absl::StatusOr<kernels::Transformers> VersionsFor(const DryRunOptions& options) {
  return kernels::TransformersFor(options.torch_version, options.transformers_version);
}

std::optional<kernels::Attention> DefaultAttention(const Model& model, const DryRunOptions& options) {
  const absl::StatusOr<kernels::Transformers> versions = VersionsFor(options);
  if (!versions.ok() || model.program == nullptr) return std::nullopt;
  return model.program->DefaultAttention(*versions);
}

bool IsTrainedByMean(const Model& model) { return model.program != nullptr && model.program->is_trained_by_mean(); }

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
  const absl::StatusOr<kernels::GpuKind> gpu = kernels::GpuNamed(options.gpu);
  if (!gpu.ok() || gpu->compute_capability >= 80) return {};
  return absl::StrCat("FlashAttention 2 does not run on a ", gpu->name, ": give --attention sdpa or eager");
}

std::string WhyNoProgram(const Model& model, const DryRunOptions& options) {
  const std::string what = model.architecture.empty() ? "a list of parameters" : model.architecture;
  if (model.program != nullptr) {
    if (IsPure(options.precision) && !model.program->runs_in_pure_half()) {
      return absl::StrCat("no dry run for ", what, " in pure half precision yet");
    }
    if (!model.program->has_attentions() &&
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
  if (model.program != nullptr) return model.program->WhyNot(options);
  return absl::StrCat("no dry run for ", what, " yet: printed from parameters only, without activations");
}

std::unique_ptr<Program> MakeProgram(kernels::Parameters& parameters, const Model& model,
                                     const DryRunOptions& options) {
  return model.program == nullptr ? nullptr : model.program->Make(parameters, options);
}

double WidestTensor(const Model& model, const DryRunOptions& options) {
  return model.program == nullptr ? 0 : model.program->WidestTensor(options);
}

}  // namespace ashlar::estimate
