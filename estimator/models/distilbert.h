// DistilBERT as transformers 4.17 to 4.51 runs it (models/distilbert/modeling_distilbert.py): no token types, eagerly
// the query scaled before the product, the mask filled in, no dropout behind attention's own output.
//
//   DistilBertModel model(parameters, "distilbert.", config, {});
//   Tensor hidden = model.Forward(ids);
#ifndef ASHLAR_ESTIMATOR_MODELS_DISTILBERT_H_
#define ASHLAR_ESTIMATOR_MODELS_DISTILBERT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "estimator/models/attention.h"
#include "estimator/models/transformers.h"
#include "kernels/nn/layers.h"

namespace ashlar::kernels {

// The keys of a Hugging Face config.json; the defaults are distilbert-base-uncased's.
struct DistilBertConfig {
  std::int64_t vocab_size = 30'522;
  std::int64_t dim = 768;
  std::int64_t n_layers = 6;
  std::int64_t n_heads = 12;
  std::int64_t hidden_dim = 3072;
  std::int64_t max_position_embeddings = 512;
  double dropout = 0.1;
  double attention_dropout = 0.1;
  double qa_dropout = 0.1;
  double seq_classif_dropout = 0.2;
  double initializer_range = 0.02;
};

class DistilBertModel {
 public:
  struct Options {
    bool is_checkpointed = false;             // each layer
    bool is_training = true;                  // dropout
    Attention attention = Attention::kEager;  // sdpa from transformers 4.46 on, flash from 4.36
  };
  DistilBertModel(Parameters& parameters, const std::string& prefix, const DistilBertConfig& config, Options options);

  // ids (B, S) int64; (B, S, dim). Where no mask is given the model makes one of ones.
  Tensor Forward(const Tensor& ids, const Call& call = {}) const;

  const Tensor& word_embeddings() const { return word_.weight(); }

 private:
  struct Layer {
    absl::string_view name, attention_name, ffn_name;
    LinearLayer query, key, value, out;
    LayerNormLayer attention_norm;
    LinearLayer up_proj, down_proj;
    LayerNormLayer output_norm;
  };
  Tensor Embed(const Tensor& ids) const;
  Tensor AttendSelf(const Layer& layer, const Tensor& x, const Tensor& mask) const;
  Tensor AttendFused(const Layer& layer, const Tensor& x, const LayerMask& mask) const;
  Tensor RunLayer(const Layer& layer, const Tensor& x, const LayerMask& mask) const;
  double dropout(double p) const { return options_.is_training ? p : 0; }

  Context& context_;
  DistilBertConfig config_;
  Options options_;
  DType dtype_;  // of the parameters
  absl::string_view embeddings_name_;
  EmbeddingLayer word_, position_;
  LayerNormLayer embedding_norm_;
  Tensor position_ids_;  // (1, max_position_embeddings) int64
  std::vector<Layer> layers_;
};

}  // namespace ashlar::kernels

#endif  // ASHLAR_ESTIMATOR_MODELS_DISTILBERT_H_
