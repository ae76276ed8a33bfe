#include <algorithm>

#include "analyzer/estimate/program.h"

namespace ashlar::estimate {
namespace {

using kernels::Context;
using kernels::DType;
using kernels::Empty;
using kernels::Part;
using kernels::T5Head;
using kernels::Tensor;

class T5Program final : public Program {
 public:
  T5Program(kernels::Parameters& parameters, const T5ProgramConfig& config, const DryRunOptions& options)
      : context_(parameters.context()),
        head_(config.head),
        model_(parameters, config.t5,
               {.head = config.head,
                .is_training = options.is_training,
                .is_checkpointed = options.is_checkpointed,
                .transformers = VersionsFor(options).value_or(kernels::Transformers())}) {}
  Tensor Loss(const BatchShape& shape, std::vector<Tensor>* outputs) override {
    const Tensor ids = Ids(shape.batch, shape.tokens), mask = MaskOf(context_, shape);
    const Tensor targets = Targets(shape);
    batch_ = {ids, mask, targets};
    return model_.Loss(ids, targets, {mask, outputs});
  }
  void Forward(const BatchShape& shape, std::vector<Tensor>* outputs) override {
    const Tensor ids = Ids(shape.batch, shape.tokens), mask = MaskOf(context_, shape);
    model_.Forward(ids, Targets(shape), {mask, outputs});
  }

 private:
  Tensor Ids(std::int64_t batch, std::int64_t tokens) {
    return Empty(context_, {batch, tokens}, DType::kInt64, Part::kBatch);
  }
  Tensor Targets(const BatchShape& shape) {
    if (head_ == T5Head::kEncoder) return {};
    return Ids(shape.batch, shape.target_tokens > 0 ? shape.target_tokens : shape.tokens);
  }
  Context& context_;
  T5Head head_;
  kernels::T5 model_;
};

}  // namespace

std::unique_ptr<Program> MakeProgramOf(const T5ProgramConfig& config, kernels::Parameters& parameters,
                                       const DryRunOptions& options) {
  return std::make_unique<T5Program>(parameters, config, options);
}

// Scores, inner activations or logits, by the longer of both sides.
double WidestTensorOf(const T5ProgramConfig& config, const DryRunOptions& options) {
  const std::int64_t target = config.head == T5Head::kEncoder ? 0 : options.target_tokens;
  const double tokens = static_cast<double>(std::max<std::int64_t>(options.tokens, 1));
  const double longest = std::max(tokens, static_cast<double>(target));
  const std::int64_t logits = config.head == T5Head::kLanguage ? config.t5.vocab_size : 0;
  const double widest = std::max(static_cast<double>(config.t5.num_heads) * longest,
                                 static_cast<double>(std::max({config.t5.d_ff, config.t5.d_model, logits})));
  return widest * longest / tokens;
}

std::string WhyNoProgramOf(const T5ProgramConfig&, const DryRunOptions& options) {
  if (options.attention.value_or(kernels::Attention::kEager) != kernels::Attention::kEager) {
    return "T5 has no fused attention in the transformers followed here, up to 4.57: --attention eager";
  }
  return {};
}

}  // namespace ashlar::estimate
