// GPT-2 as transformers runs it eagerly (models/gpt2/modeling_gpt2.py): packed attention weights, a causal mask buffer
// a layer, the tanh gelu in plain Python, the head tied to the embedding, the loss over shifted logits.
#ifndef ASHLAR_KERNELS_NN_GPT2_H_
#define ASHLAR_KERNELS_NN_GPT2_H_

#include <cstdint>
#include <vector>

#include "kernels/nn/layers.h"

namespace ashlar::kernels {

// The keys of a Hugging Face config.json; the defaults are gpt2's.
struct Gpt2Config {
  std::int64_t vocab_size = 50'257;
  std::int64_t n_positions = 1024;
  std::int64_t n_embd = 768;
  std::int64_t n_layer = 12;
  std::int64_t n_head = 12;
  double resid_pdrop = 0.1;
  double embd_pdrop = 0.1;
  double attn_pdrop = 0.1;
  double layer_norm_epsilon = 1e-5;
  double initializer_range = 0.02;
};

class Gpt2 {
 public:
  struct Options {
    bool is_checkpointed = false;  // each layer
    bool is_training = true;       // dropout
  };
  Gpt2(Parameters& parameters, const Gpt2Config& config, Options options);

  // ids (B, S) int64; logits (B, S, vocabulary).
  Tensor Logits(const Tensor& ids) const;
  // The mean cross-entropy of each next token.
  Tensor Loss(const Tensor& ids) const;

 private:
  struct Projection {  // transformers' Conv1D: weight (in, out)
    Tensor weight, bias;
    Tensor operator()(const Tensor& x) const;
  };
  struct Layer {
    LayerNormLayer norm_attention;
    Tensor mask;  // (1, 1, n_positions, n_positions) bool, true where a key may be seen
    Projection attention, attention_out;
    LayerNormLayer norm_mlp;
    Projection mlp, mlp_out;
  };
  Tensor RunLayer(const Layer& layer, const Tensor& hidden) const;
  Tensor Attend(const Layer& layer, const Tensor& hidden) const;
  double dropout(double p) const { return options_.is_training ? p : 0; }

  Context& context_;
  Gpt2Config config_;
  Options options_;
  EmbeddingLayer tokens_, positions_;
  std::vector<Layer> layers_;
  LayerNormLayer final_norm_;
};

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_NN_GPT2_H_
