// TabFormer's hierarchical BERT over tables (IBM, github.com/IBM/TabFormer): each of a row's columns is a token of a
// small vocabulary, a field encoder joins a row's columns, BERT reads the rows, and each column's loss looks at the
// logits of that column's categories. The logits have the whole vocabulary's width.
#ifndef ASHLAR_ESTIMATOR_MODELS_TABFORMER_H_
#define ASHLAR_ESTIMATOR_MODELS_TABFORMER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "estimator/models/attention.h"
#include "estimator/models/bert.h"
#include "kernels/nn/layers.h"

namespace ashlar::kernels {

// nn.TransformerEncoderLayer and nn.MultiheadAttention of torch 1.10 (nn/functional.py), sequence first: packed input
// projection, products of (batch x heads) matrices, relu, norms after the sums.
class EncoderLayer {
 public:
  EncoderLayer() = default;
  EncoderLayer(Parameters& parameters, const std::string& name, std::int64_t width, std::int64_t heads,
               std::int64_t inner, double dropout);
  // x (S, B, width)
  Tensor operator()(const Tensor& x) const;

 private:
  Tensor Attend(const Tensor& x) const;

  absl::string_view name_, attention_name_;
  std::int64_t heads_ = 1;
  double dropout_ = 0;
  Tensor in_weight_, in_bias_;
  LinearLayer out_projection_, up_proj_, down_proj_;
  LayerNormLayer norm_attention_, norm_feed_forward_;
};

struct TabFormerConfig {
  std::vector<std::int64_t> column_sizes;  // categories of each column; their sum is the vocabulary
  std::int64_t rows = 10;                  // of a sequence
  std::int64_t field_width = 64;
  std::int64_t field_heads = 8;
  std::int64_t layers = 12;
  std::int64_t inner = 3072;
  double dropout = 0.1;
  double initializer_range = 0.02;

  std::int64_t columns() const { return static_cast<std::int64_t>(column_sizes.size()); }
  std::int64_t vocabulary() const;
};

struct TabFormerOptions {
  bool is_checkpointed = false;  // each layer of BERT
  bool is_training = true;       // dropout
};

class TabFormer {
 public:
  TabFormer(Parameters& parameters, const TabFormerConfig& config, TabFormerOptions options = {});
  // ids and labels (B, rows, columns) int64, labels counted within their column; the sum of the columns' losses.
  Tensor Loss(const Tensor& ids, const Tensor& labels, const Call& call = {}) const;
  // The logits of the whole vocabulary, which end with the call.
  void Forward(const Tensor& ids, const Call& call = {}) const;

 private:
  Tensor EmbedRows(const Tensor& ids) const;
  Tensor Logits(const Tensor& hidden) const;
  Tensor ColumnLoss(const Tensor& logits, const Tensor& labels, std::int64_t column, std::int64_t first_id) const;

  Context& context_;
  TabFormerConfig config_;
  EmbeddingLayer fields_;
  EncoderLayer field_encoder_;
  LinearLayer projection_;
  BertModel bert_;
  Tensor decoder_bias_;
  LinearLayer head_dense_;
  LayerNormLayer head_norm_;
};

}  // namespace ashlar::kernels

#endif  // ASHLAR_ESTIMATOR_MODELS_TABFORMER_H_
