// bert, roberta, xlm-roberta and distilbert, with any of their heads.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analyzer/estimate/program.h"

namespace ashlar::estimate {
namespace {

using kernels::Context;
using kernels::DType;
using kernels::Empty;
using kernels::EncoderTask;
using kernels::Part;
using kernels::Tensor;

class EncoderProgram final : public Program {
 public:
  EncoderProgram(Context& context, EncoderTask task, std::unique_ptr<kernels::EncoderForTask> model)
      : context_(context), task_(task), model_(std::move(model)) {}
  Tensor Loss(const BatchShape& shape, std::vector<Tensor>* outputs) override {
    const Tensor ids = Ids(shape), mask = MaskOf(context_, shape);
    const kernels::TaskLabels labels = kernels::EmptyLabels(context_, task_, shape.batch, shape.tokens);
    batch_ = {ids, mask, labels.first, labels.second};
    return model_->Loss(ids, labels, {mask, outputs, shape.real_tokens});
  }
  void Forward(const BatchShape& shape, std::vector<Tensor>* outputs) override {
    const Tensor ids = Ids(shape);
    model_->Forward(ids, {MaskOf(context_, shape), outputs, shape.real_tokens});
  }

 private:
  Tensor Ids(const BatchShape& shape) {
    return Empty(context_, {shape.batch, shape.tokens}, DType::kInt64, Part::kBatch);
  }
  Context& context_;
  EncoderTask task_;
  std::unique_ptr<kernels::EncoderForTask> model_;
};

// Scores, inner activations or logits.
double WidestOfEncoder(std::int64_t heads, std::int64_t inner, std::int64_t width, std::int64_t vocabulary,
                       EncoderTask task, const DryRunOptions& options) {
  const bool has_logits =
      task == EncoderTask::kMaskedLanguage || task == EncoderTask::kCausalLanguage || task == EncoderTask::kPreTraining;
  return std::max(static_cast<double>(heads) * static_cast<double>(options.tokens),
                  static_cast<double>(std::max({inner, width, has_logits ? vocabulary : 0})));
}

}  // namespace

std::unique_ptr<Program> MakeProgramOf(const BertProgramConfig& config, kernels::Parameters& parameters,
                                       const DryRunOptions& options) {
  const auto make = config.padding_id.has_value() ? kernels::MakeRoberta : kernels::MakeBert;
  return std::make_unique<EncoderProgram>(parameters.context(), config.head.task,
                                          make(parameters, config.bert, config.head,
                                               {.is_checkpointed = options.is_checkpointed,
                                                .is_training = options.is_training,
                                                .has_sdpa = options.attention == kernels::Attention::kSdpa,
                                                .padding_id = config.padding_id}));
}

std::unique_ptr<Program> MakeProgramOf(const DistilBertProgramConfig& config, kernels::Parameters& parameters,
                                       const DryRunOptions& options) {
  return std::make_unique<EncoderProgram>(
      parameters.context(), config.head.task,
      kernels::MakeDistilBert(parameters, config.bert, config.head,
                              {.is_checkpointed = options.is_checkpointed,
                               .is_training = options.is_training,
                               .attention = options.attention.value_or(kernels::Attention::kEager)}));
}

double WidestTensorOf(const BertProgramConfig& config, const DryRunOptions& options) {
  const kernels::BertConfig& bert = config.bert;
  return WidestOfEncoder(bert.num_attention_heads, bert.intermediate_size, bert.hidden_size, bert.vocab_size,
                         config.head.task, options);
}

double WidestTensorOf(const DistilBertProgramConfig& config, const DryRunOptions& options) {
  const kernels::DistilBertConfig& bert = config.bert;
  return WidestOfEncoder(bert.n_heads, bert.hidden_dim, bert.dim, bert.vocab_size, config.head.task, options);
}

std::string WhyNoProgramOf(const BertProgramConfig& config, const DryRunOptions& options) {
  if (options.attention != kernels::Attention::kFlash) return {};
  return absl::StrCat(config.padding_id.has_value() ? "RoBERTa" : "BERT",
                      " has no flash_attn in the transformers followed here: --attention sdpa");
}
std::string WhyNoProgramOf(const DistilBertProgramConfig&, const DryRunOptions& options) { return WhyNoFlash(options); }

}  // namespace ashlar::estimate
