// GPT-Neo as transformers 4.3x to 4.51 runs it (models/gpt_neo/modeling_gpt_neo.py): scores in float, layers
// that see all or the last tokens by a mask buffer, the tanh gelu in plain Python; or with the package flash_attn,
// whose layers all see all tokens.
#ifndef ASHLAR_KERNELS_NN_GPT_NEO_H_
#define ASHLAR_KERNELS_NN_GPT_NEO_H_

#include <cstdint>
#include <vector>

#include "kernels/nn/decoder_head.h"
#include "kernels/nn/layers.h"
#include "kernels/nn/transformers.h"

namespace ashlar::kernels {

struct GptNeoConfig {
  std::int64_t vocabulary = 50'257;
  std::int64_t positions = 2048;
  std::int64_t width = 2048;
  std::int64_t layers = 24;
  std::int64_t heads = 16;
  std::int64_t inner = 8192;
  std::int64_t window = 256;
  std::vector<bool> is_local = {};  // by layer; missing ones see all
  double residual_dropout = 0;
  double embedding_dropout = 0;
  double attention_dropout = 0;
  double norm_epsilon = 1e-5;
  double initializer_range = 0.02;
  bool is_tied = true;
};

class GptNeo {
 public:
  struct Options {
    DecoderHead head = DecoderHead::kLanguageModel;
    std::int64_t labels = 2;                  // of a classifier
    Attention attention = Attention::kEager;  // or kFlash
    Transformers transformers = {};
    bool is_checkpointed = false;  // each layer
    bool is_training = true;
  };
  GptNeo(Parameters& parameters, const GptNeoConfig& config, const Options& options);

  // ids (B, S) int64; labels (B, S), of a classifier (B).
  Tensor Loss(const Tensor& ids, const Tensor& labels, const Call& call = {}) const;
  void Forward(const Tensor& ids, const Call& call = {}) const;

 private:
  struct Layer {
    absl::string_view name, attention_name, mlp_name;
    LayerNormLayer norm_attention;
    Tensor mask;         // (1, 1, positions, positions) bool
    Tensor masked_bias;  // a buffer of one element that nothing reads
    LinearLayer query, key, value, output;
    LayerNormLayer norm_feed_forward;
    LinearLayer raise, lower;
  };
  DecoderOutput Run(const Tensor& ids, const Call& call) const;
  Tensor RunLayer(const Layer& layer, const Tensor& hidden, const LayerMask& mask, std::vector<Tensor>* cache) const;
  Tensor Attend(const Layer& layer, const Tensor& hidden, const LayerMask& mask, std::vector<Tensor>* cache) const;
  Tensor AttendEagerly(const Layer& layer, const Tensor& query, const Tensor& key, const Tensor& value,
                       const Tensor& bias, Tensor& weights) const;
  double dropout(double p) const { return options_.is_training ? p : 0; }

  Context& context_;
  GptNeoConfig config_;
  Options options_;
  EmbeddingLayer tokens_, positions_;
  std::vector<Layer> layers_;
  LayerNormLayer final_norm_;
  DecoderTop top_;
};

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_NN_GPT_NEO_H_
