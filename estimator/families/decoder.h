// Shared by the families of decoders: their heads, the parameters of those, and the program that runs one.
//
//   class Gpt2Maker final : public DecoderMaker<kernels::Gpt2, kernels::Gpt2Config> { ... };
#ifndef ASHLAR_ESTIMATOR_FAMILIES_DECODER_H_
#define ASHLAR_ESTIMATOR_FAMILIES_DECODER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "estimator/families/families.h"
#include "estimator/models/decoder_head.h"
#include "estimator/program.h"

namespace ashlar::estimate {

// Behind the body; a classifier's has no bias.
void AddDecoderHead(kernels::DecoderHead head, const char* embeddings, std::int64_t vocabulary, std::int64_t width,
                    bool is_tied, ConfigKeys& keys, ParameterList& list);

double WidestOfDecoder(std::int64_t heads, std::int64_t inner, std::int64_t vocabulary, const DryRunOptions& options);

// Empty, or what no decoder can do; `has` is the activation that the family's program has.
std::string WhyNoDecoder(const std::string& activation, const char* has, const DryRunOptions& options);

template <typename Module>
class DecoderProgram final : public Program {
 public:
  template <typename Config>
  DecoderProgram(kernels::Parameters& parameters, const Config& config, kernels::DecoderHead head,
                 const typename Module::Options& options)
      : context_(parameters.context()), head_(head), module_(parameters, config, options) {}
  kernels::Tensor Loss(const BatchShape& shape, std::vector<kernels::Tensor>* outputs) override {
    const kernels::Tensor ids = Ids({shape.batch, shape.tokens}), mask = MaskOf(context_, shape),
                          labels = Labels(shape);
    batch_ = {ids, mask, labels};
    return module_.Loss(ids, labels, {mask, outputs, shape.real_tokens});
  }
  void Forward(const BatchShape& shape, std::vector<kernels::Tensor>* outputs) override {
    const kernels::Tensor ids = Ids({shape.batch, shape.tokens});
    module_.Forward(ids, {MaskOf(context_, shape), outputs, shape.real_tokens});
  }

 private:
  kernels::Tensor Labels(const BatchShape& shape) {
    if (head_ == kernels::DecoderHead::kNone) return {};
    return head_ == kernels::DecoderHead::kClassifier ? Ids({shape.batch}) : Ids({shape.batch, shape.tokens});
  }
  kernels::Tensor Ids(kernels::Dims sizes) {
    return kernels::Empty(context_, std::move(sizes), kernels::DType::kInt64, kernels::Part::kBatch);
  }
  kernels::Context& context_;
  kernels::DecoderHead head_;
  Module module_;
};

// Module is the family's of kernels/nn, Config its sizes.
template <typename Module, typename Config>
class DecoderMaker : public ProgramMaker {
 public:
  // `activation` as the description names it; `labels` of a classifier.
  DecoderMaker(Config config, kernels::DecoderHead head, std::int64_t labels, std::string activation)
      : config_(std::move(config)), head_(head), labels_(labels), activation_(std::move(activation)) {}

  std::unique_ptr<Program> Make(kernels::Parameters& parameters, const DryRunOptions& options) const override {
    typename Module::Options of_module;
    of_module.head = head_;
    of_module.labels = labels_;
    of_module.transformers = VersionsFor(options).value_or(kernels::Transformers());
    of_module.is_checkpointed = options.is_checkpointed;
    of_module.is_training = options.is_training;
    of_module.attention =
        options.attention.value_or(DefaultAttention(of_module.transformers).value_or(kernels::Attention::kEager));
    return std::make_unique<DecoderProgram<Module>>(parameters, config_, head_, of_module);
  }
  bool is_trained_by_mean() const override { return head_ == kernels::DecoderHead::kNone; }

 protected:
  const Config& config() const { return config_; }
  std::string WhyNotWith(const char* activation, const DryRunOptions& options) const {
    return WhyNoDecoder(activation_, activation, options);
  }

 private:
  Config config_;
  kernels::DecoderHead head_;
  std::int64_t labels_;
  std::string activation_;
};

}  // namespace ashlar::estimate

#endif  // ASHLAR_ESTIMATOR_FAMILIES_DECODER_H_
