// GPT-2 as transformers 4.3x to 4.57 runs it (models/gpt2/modeling_gpt2.py; kernels/nn/transformers.h has what
// differs): packed attention weights, a causal mask buffer a layer, the tanh gelu in plain Python; keys and values are
// kept until the outputs end, as use_cache does, but not with checkpointing.
#ifndef ASHLAR_KERNELS_NN_GPT2_H_
#define ASHLAR_KERNELS_NN_GPT2_H_

#include <cstdint>
#include <vector>

#include "kernels/nn/decoder_head.h"
#include "kernels/nn/layers.h"
#include "kernels/nn/transformers.h"

namespace ashlar::kernels {

// The keys of a Hugging Face config.json; the defaults are gpt2's.
struct Gpt2Config {
  std::int64_t vocab_size = 50'257;
  std::int64_t n_positions = 1024;
  std::int64_t n_embd = 768;
  std::int64_t n_layer = 12;
  std::int64_t n_head = 12;
  std::int64_t n_inner = 0;  // 0: four times n_embd
  double resid_pdrop = 0.1;
  double embd_pdrop = 0.1;
  double attn_pdrop = 0.1;
  double layer_norm_epsilon = 1e-5;
  double initializer_range = 0.02;
  bool is_tied = true;
};

class Gpt2 {
 public:
  struct Options {
    bool is_checkpointed = false;  // each layer
    bool is_training = true;       // dropout
    DecoderHead head = DecoderHead::kLanguageModel;
    std::int64_t labels = 2;  // of a classifier
    Attention attention = Attention::kEager;
    Transformers transformers = {};
  };
  Gpt2(Parameters& parameters, const Gpt2Config& config, Options options);

  // ids (B, S) int64; labels (B, S), of a classifier (B).
  Tensor Loss(const Tensor& ids, const Tensor& labels, const Call& call = {}) const;
  // The mean cross-entropy of each next token.
  Tensor Loss(const Tensor& ids) const { return Loss(ids, ids); }
  void Forward(const Tensor& ids, const Call& call = {}) const;

 private:
  struct Projection {  // transformers' Conv1D: weight (in, out)
    absl::string_view name;
    Tensor weight, bias;
    Tensor operator()(const Tensor& x) const;
  };
  struct Layer {
    absl::string_view name, attention_name, mlp_name;
    LayerNormLayer norm_attention;
    Tensor mask;         // (1, 1, n_positions, n_positions) bool, true where a key may be seen
    Tensor masked_bias;  // a buffer of one element that nothing reads
    Projection attention, attention_out;
    LayerNormLayer norm_mlp;
    Projection mlp, mlp_out;
  };
  DecoderOutput Run(const Tensor& ids, const Call& call) const;
  Tensor RunLayer(const Layer& layer, const Tensor& hidden, const LayerMask& mask, std::vector<Tensor>* cache) const;
  Tensor Attend(const Layer& layer, const Tensor& hidden, const LayerMask& mask, std::vector<Tensor>* cache) const;
  // query, key, value (B, H, S, D); the result (B, S, H D).
  Tensor AttendEagerly(const Layer& layer, const Tensor& query, const Tensor& key, const Tensor& value,
                       const Tensor& bias, Tensor& weights) const;
  Tensor AttendFused(const Tensor& query, const Tensor& key, const Tensor& value, const LayerMask& mask) const;
  double dropout(double p) const { return options_.is_training ? p : 0; }

  Context& context_;
  Gpt2Config config_;
  Options options_;
  EmbeddingLayer tokens_, positions_;
  std::vector<Layer> layers_;
  LayerNormLayer final_norm_;
  DecoderTop top_;
};

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_NN_GPT2_H_
