#include <algorithm>

#include "analyzer/estimate/program.h"

namespace ashlar::estimate {
namespace {

using kernels::Context;
using kernels::DType;
using kernels::Empty;
using kernels::Part;
using kernels::Tensor;

class BertProgram final : public Program {
 public:
  BertProgram(kernels::Parameters& parameters, const BertClassifierConfig& config, const DryRunOptions& options)
      : context_(parameters.context()),
        model_(parameters, config.bert, config.labels,
               {.is_checkpointed = options.is_checkpointed, .is_training = options.is_training}) {}
  Tensor Loss(const BatchShape& shape) override {
    const Tensor ids = Ids(shape);
    return model_.Loss(ids, Empty(context_, {shape.batch}, DType::kInt64, Part::kBatch));
  }
  void Forward(const BatchShape& shape) override { model_.Logits(Ids(shape)); }

 private:
  Tensor Ids(const BatchShape& shape) {
    return Empty(context_, {shape.batch, shape.tokens}, DType::kInt64, Part::kBatch);
  }
  Context& context_;
  kernels::BertClassifier model_;
};

}  // namespace

std::unique_ptr<Program> MakeProgramOf(const BertClassifierConfig& config, kernels::Parameters& parameters,
                                       const DryRunOptions& options) {
  return std::make_unique<BertProgram>(parameters, config, options);
}

double WidestTensorOf(const BertClassifierConfig& config, const DryRunOptions& options) {
  return std::max(static_cast<double>(config.bert.num_attention_heads) * static_cast<double>(options.tokens),
                  static_cast<double>(std::max(config.bert.intermediate_size, config.bert.hidden_size)));
}

std::string WhyNoProgramOf(const BertClassifierConfig&, const DryRunOptions&) { return {}; }

}  // namespace ashlar::estimate
