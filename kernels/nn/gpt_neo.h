// GPT-Neo as transformers 4.3x to 4.51 runs it (models/gpt_neo/modeling_gpt_neo.py): scores in float, layers that see
// all or the last tokens by a mask buffer; or with the package flash_attn, whose layers all see all tokens.
// kernels/nn/gpt_model.h has what it shares with GPT-2.
#ifndef ASHLAR_KERNELS_NN_GPT_NEO_H_
#define ASHLAR_KERNELS_NN_GPT_NEO_H_

#include <cstdint>
#include <vector>

#include "kernels/nn/gpt_model.h"

namespace ashlar::kernels {

// The keys of a Hugging Face config.json, and what its "attention_types" come to.
struct GptNeoConfig {
  std::int64_t vocab_size = 50'257;
  std::int64_t max_position_embeddings = 2048;
  std::int64_t hidden_size = 2048;
  std::int64_t num_layers = 24;
  std::int64_t num_heads = 16;
  std::int64_t intermediate_size = 8192;
  std::int64_t window_size = 256;
  std::vector<bool> is_local = {};  // by layer; missing ones see all
  double resid_dropout = 0;
  double embed_dropout = 0;
  double attention_dropout = 0;
  double layer_norm_epsilon = 1e-5;
  double initializer_range = 0.02;
  bool tie_word_embeddings = true;
};

class GptNeo final : public GptModel {
 public:
  GptNeo(Parameters& parameters, const GptNeoConfig& config, const Options& options);

 private:
  LayerMask MaskOf(const Tensor& words, const Call& call) const override;
};

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_NN_GPT_NEO_H_
