#include <algorithm>

#include "analyzer/estimate/program.h"

namespace ashlar::estimate {
namespace {

using kernels::Context;
using kernels::DType;
using kernels::Empty;
using kernels::Part;
using kernels::Tensor;

class TabFormerProgram final : public Program {
 public:
  TabFormerProgram(kernels::Parameters& parameters, const kernels::TabFormerConfig& config,
                   const DryRunOptions& options)
      : context_(parameters.context()),
        rows_(config.rows),
        columns_(config.columns()),
        model_(parameters, config, {.is_checkpointed = options.is_checkpointed, .is_training = options.is_training}) {}
  Tensor Loss(const BatchShape& shape, std::vector<Tensor>* outputs) override {
    const kernels::Dims sizes = {shape.batch, rows_, columns_};
    const Tensor ids = Empty(context_, sizes, DType::kInt64, Part::kBatch);
    const Tensor labels = Empty(context_, sizes, DType::kInt64, Part::kBatch);
    batch_ = {ids, labels};
    return model_.Loss(ids, labels, {{}, outputs});
  }
  void Forward(const BatchShape& shape, std::vector<Tensor>* outputs) override {
    model_.Forward(Empty(context_, {shape.batch, rows_, columns_}, DType::kInt64, Part::kBatch), {{}, outputs});
  }

 private:
  Context& context_;
  std::int64_t rows_;
  std::int64_t columns_;
  kernels::TabFormer model_;
};

}  // namespace

std::unique_ptr<Program> MakeProgramOf(const kernels::TabFormerConfig& config, kernels::Parameters& parameters,
                                       const DryRunOptions& options) {
  return std::make_unique<TabFormerProgram>(parameters, config, options);
}

double WidestTensorOf(const kernels::TabFormerConfig& config, const DryRunOptions&) {
  return static_cast<double>(std::max(config.vocabulary(), config.inner));
}

std::string WhyNoProgramOf(const kernels::TabFormerConfig&, const DryRunOptions&) { return {}; }

}  // namespace ashlar::estimate
