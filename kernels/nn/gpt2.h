// GPT-2 as transformers 4.3x to 4.57 runs it (models/gpt2/modeling_gpt2.py; kernels/nn/transformers.h has what
// differs): packed attention weights that lie the other way round, scores in the weights' dtype. kernels/nn/gpt_model.h
// has what it shares with GPT-Neo.
#ifndef ASHLAR_KERNELS_NN_GPT2_H_
#define ASHLAR_KERNELS_NN_GPT2_H_

#include <cstdint>

#include "kernels/nn/gpt_model.h"

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
  bool tie_word_embeddings = true;
};

class Gpt2 final : public GptModel {
 public:
  Gpt2(Parameters& parameters, const Gpt2Config& config, const Options& options);

 private:
  LayerMask MaskOf(const Tensor& words, const Call& call) const override;
  Tensor PackedMask(const Tensor& words) const override;
};

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_NN_GPT2_H_
