// The programs of decoders: GPT-2, GPT-Neo, and llama's kin.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analyzer/estimate/program.h"

namespace ashlar::estimate {
namespace {

using kernels::Attention;
using kernels::Context;
using kernels::DecoderHead;
using kernels::DType;
using kernels::Empty;
using kernels::Part;
using kernels::Tensor;

template <typename Module>
class DecoderProgram final : public Program {
 public:
  template <typename Config>
  DecoderProgram(kernels::Parameters& parameters, const Config& config, DecoderHead head,
                 const typename Module::Options& options)
      : context_(parameters.context()), head_(head), module_(parameters, config, options) {}
  Tensor Loss(const BatchShape& shape, std::vector<Tensor>* outputs) override {
    const Tensor ids = Ids({shape.batch, shape.tokens}), mask = MaskOf(context_, shape), labels = Labels(shape);
    batch_ = {ids, mask, labels};
    return module_.Loss(ids, labels, {mask, outputs, shape.real_tokens});
  }
  void Forward(const BatchShape& shape, std::vector<Tensor>* outputs) override {
    const Tensor ids = Ids({shape.batch, shape.tokens});
    module_.Forward(ids, {MaskOf(context_, shape), outputs, shape.real_tokens});
  }

 private:
  Tensor Labels(const BatchShape& shape) {
    if (head_ == DecoderHead::kNone) return {};
    return head_ == DecoderHead::kClassifier ? Ids({shape.batch}) : Ids({shape.batch, shape.tokens});
  }
  Tensor Ids(kernels::Dims sizes) { return Empty(context_, std::move(sizes), DType::kInt64, Part::kBatch); }
  Context& context_;
  DecoderHead head_;
  Module module_;
};

kernels::Transformers VersionsOf(const DryRunOptions& options) {
  const absl::StatusOr<kernels::Transformers> versions = VersionsFor(options);
  return versions.ok() ? *versions : kernels::Transformers();
}

// What all modules' options have.
template <typename Module, typename Config>
typename Module::Options OptionsOf(const DecoderProgramConfig<Config>& config, const DryRunOptions& options) {
  typename Module::Options out;
  out.head = config.head;
  out.labels = config.labels;
  out.transformers = VersionsOf(options);
  out.is_checkpointed = options.is_checkpointed;
  out.is_training = options.is_training;
  return out;
}

double WidestOfDecoder(std::int64_t heads, std::int64_t inner, std::int64_t vocabulary, const DryRunOptions& options) {
  return std::max(static_cast<double>(heads) * static_cast<double>(options.tokens),
                  static_cast<double>(std::max(inner, vocabulary)));
}

// What no decoder can do; `activation` is the family's.
template <typename Config>
std::string WhyNot(const DecoderProgramConfig<Config>& config, const DryRunOptions& options, const char* activation) {
  if (!config.activation.empty() && config.activation != activation) {
    return absl::StrCat("no dry run with the activation '", config.activation, "' yet: this family has ", activation);
  }
  return WhyNoFlash(options);
}

}  // namespace

std::unique_ptr<Program> MakeProgramOf(const LlamaProgramConfig& config, kernels::Parameters& parameters,
                                       const DryRunOptions& options) {
  auto of_module = OptionsOf<kernels::Decoder>(config, options);
  of_module.attention =
      options.attention.value_or(of_module.transformers.prefers_sdpa ? Attention::kSdpa : Attention::kEager);
  return std::make_unique<DecoderProgram<kernels::Decoder>>(parameters, config.decoder, config.head, of_module);
}

std::unique_ptr<Program> MakeProgramOf(const Gpt2ProgramConfig& config, kernels::Parameters& parameters,
                                       const DryRunOptions& options) {
  auto of_module = OptionsOf<kernels::Gpt2>(config, options);
  of_module.attention =
      options.attention.value_or(of_module.transformers.gpt2_has_sdpa ? Attention::kSdpa : Attention::kEager);
  return std::make_unique<DecoderProgram<kernels::Gpt2>>(parameters, config.decoder, config.head, of_module);
}

std::unique_ptr<Program> MakeProgramOf(const GptNeoProgramConfig& config, kernels::Parameters& parameters,
                                       const DryRunOptions& options) {
  auto of_module = OptionsOf<kernels::GptNeo>(config, options);
  of_module.attention = options.attention.value_or(Attention::kEager);
  return std::make_unique<DecoderProgram<kernels::GptNeo>>(parameters, config.decoder, config.head, of_module);
}

double WidestTensorOf(const LlamaProgramConfig& config, const DryRunOptions& options) {
  return WidestOfDecoder(config.decoder.heads, config.decoder.inner, config.decoder.vocabulary, options);
}

double WidestTensorOf(const Gpt2ProgramConfig& config, const DryRunOptions& options) {
  const std::int64_t inner = std::max(config.decoder.n_inner, 4 * config.decoder.n_embd);
  return WidestOfDecoder(config.decoder.n_head, inner, config.decoder.vocab_size, options);
}

double WidestTensorOf(const GptNeoProgramConfig& config, const DryRunOptions& options) {
  return WidestOfDecoder(config.decoder.heads, config.decoder.inner, config.decoder.vocabulary, options);
}

std::string WhyNoProgramOf(const LlamaProgramConfig& config, const DryRunOptions& options) {
  const bool is_gemma = config.decoder.family == kernels::DecoderFamily::kGemma;
  return WhyNot(config, options, is_gemma ? "gelu_pytorch_tanh" : "silu");
}

std::string WhyNoProgramOf(const Gpt2ProgramConfig& config, const DryRunOptions& options) {
  const absl::StatusOr<kernels::Transformers> versions = VersionsFor(options);
  if (options.attention == Attention::kFlash && versions.ok() && versions->has_flash && !versions->gpt2_has_flash) {
    return absl::StrCat("transformers of torch ", options.torch_version,
                        " had no FlashAttention 2 for GPT-2: give --attention eager, or --torch 2.3 or later");
  }
  return WhyNot(config, options, "gelu_new");
}

std::string WhyNoProgramOf(const GptNeoProgramConfig& config, const DryRunOptions& options) {
  if (options.attention == Attention::kSdpa) {
    return "GPT-Neo has no sdpa in the transformers followed here: --attention eager or flash";
  }
  return WhyNot(config, options, "gelu_new");
}

}  // namespace ashlar::estimate
