// BERT as transformers 4.1x runs it eagerly (models/bert/modeling_bert.py): attention with all scores, fp32 mask, and
// the lifetimes of its Python locals. RoBERTa is the same but for its position ids (models/roberta).
//
//   BertModel bert(parameters, "bert.", config, {.is_checkpointed = true});
//   BertModel::Output out = bert.Forward(ids);
#ifndef ASHLAR_ESTIMATOR_MODELS_BERT_H_
#define ASHLAR_ESTIMATOR_MODELS_BERT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/nn/layers.h"

namespace ashlar::kernels {

// The keys of a Hugging Face config.json; the defaults are bert-base-uncased's.
struct BertConfig {
  std::int64_t vocab_size = 30'522;
  std::int64_t hidden_size = 768;
  std::int64_t num_hidden_layers = 12;
  std::int64_t num_attention_heads = 12;
  std::int64_t intermediate_size = 3072;
  std::int64_t max_position_embeddings = 512;
  std::int64_t type_vocab_size = 2;
  double hidden_dropout_prob = 0.1;
  double attention_probs_dropout_prob = 0.1;
  double layer_norm_eps = 1e-12;
  double initializer_range = 0.02;
};
BertConfig BertLarge();

class BertModel {
 public:
  struct Options {
    bool has_pooler = true;
    bool is_checkpointed = false;  // each layer
    bool is_training = true;       // dropout
    bool has_sdpa = false;  // BertSdpaSelfAttention (transformers 4.41 on): no scores, and no mask for full batches
    // RoBERTa: positions are counted over the tokens that are not this one, from the number after it. Where there is
    // arithmetic, no token is.
    std::optional<std::int64_t> padding_id = {};
  };
  struct Output {
    Tensor hidden;  // (B, S, hidden_size)
    Tensor pooled;  // (B, hidden_size), with a pooler
  };

  BertModel(Parameters& parameters, const std::string& prefix, const BertConfig& config, Options options);

  // ids (B, S) int64, mask (B, S) int64. Where none is given the model makes one of ones.
  Output Forward(const Tensor& ids, const Tensor& mask = {}) const;
  // In place of the word embeddings' lookup: (B, S, hidden_size).
  Output ForwardEmbedded(const Tensor& embedded) const;

  const Tensor& word_embeddings() const { return word_.weight(); }

 private:
  struct Layer {
    absl::string_view name, self_name, attention_name, intermediate_name, output_name;
    LinearLayer query, key, value, attention_dense;
    LayerNormLayer attention_norm;
    LinearLayer intermediate, output;
    LayerNormLayer output_norm;
  };
  Tensor Embed(const Tensor& words, const Tensor& position_ids) const;
  Tensor PositionIds(const Tensor& ids) const;
  // Without a given mask of `ones`, which the caller holds.
  Tensor Mask(const Tensor& given, std::int64_t batch, std::int64_t length, Tensor& ones) const;
  Tensor RunLayer(const Layer& layer, const Tensor& hidden, const Tensor& mask) const;
  Tensor AttendSelf(const Layer& layer, const Tensor& hidden, const Tensor& mask) const;
  Tensor AttendFused(const Layer& layer, const Tensor& hidden, const Tensor& mask) const;
  Output Encode(const Tensor& embedded, const Tensor& mask) const;
  double dropout(double p) const { return options_.is_training ? p : 0; }

  Context& context_;
  BertConfig config_;
  Options options_;
  DType dtype_;  // of the parameters
  absl::string_view embeddings_name_, pooler_name_;
  EmbeddingLayer word_, position_, type_;
  LayerNormLayer embedding_norm_;
  Tensor position_ids_, type_ids_;  // (1, max_position_embeddings) int64
  std::vector<Layer> layers_;
  LinearLayer pooler_;
};

// BertForSequenceClassification: logits (B, labels).
class BertClassifier {
 public:
  BertClassifier(Parameters& parameters, const BertConfig& config, std::int64_t labels, BertModel::Options options);
  // ids (B, S), labels (B) int64; the mean cross-entropy. The logits end with the call.
  Tensor Loss(const Tensor& ids, const Tensor& labels) const;
  Tensor Logits(const Tensor& ids) const;

 private:
  double dropout_;
  BertModel bert_;
  LinearLayer classifier_;
};

}  // namespace ashlar::kernels

#endif  // ASHLAR_ESTIMATOR_MODELS_BERT_H_
