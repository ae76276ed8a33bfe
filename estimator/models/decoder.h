// Llama and what is built like it: qwen2, mistral, gemma (models/llama/modeling_llama.py and its kin in transformers
// 4.38 to 4.57; estimator/models/transformers.h has what differs). RMS norms in plain Python, rotary positions, keys
// and values shared by groups of heads, a gated feed-forward; the keys and values are kept until the outputs end, as
// use_cache does, but not with checkpointing.
//
//   DecoderModel model(parameters, config, {.head = DecoderHead::kLanguageModel});
//   Tensor loss = model.Loss(ids, labels);
#ifndef ASHLAR_ESTIMATOR_MODELS_DECODER_H_
#define ASHLAR_ESTIMATOR_MODELS_DECODER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimator/models/decoder_head.h"
#include "estimator/models/transformers.h"
#include "kernels/nn/layers.h"
#include "kernels/tensor/context.h"
#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

// Rotary positions as transformers has them in llama and its kin (models/llama/modeling_llama.py): cosines and sines of
// whole heads, and halves that are turned by a cat.
struct RotaryTables {
  Tensor cosines, sines;  // (1, S, D)
};

class RotaryEmbedding {
 public:
  RotaryEmbedding() = default;
  // `scales`: the tables are products with a factor, which is 1 here.
  RotaryEmbedding(Context& context, std::int64_t head_width, double theta, bool scales = false);
  // For positions (1, S) int64, in the dtype; without a graph.
  RotaryTables operator()(const Tensor& positions, DType dtype) const;

 private:
  double theta_ = 0;
  bool scales_ = false;
  Tensor frequencies_;  // a buffer, (D / 2) float
};

// x (B, H, S, D).
Tensor ApplyRotary(const Tensor& x, const RotaryTables& tables);

enum class DecoderFamily : std::uint8_t { kLlama, kQwen2, kMistral, kGemma };

// The keys of a Hugging Face config.json where it has them; the defaults are llama-2-7b's.
struct DecoderConfig {
  DecoderFamily family = DecoderFamily::kLlama;
  std::int64_t vocab_size = 32'000;
  std::int64_t hidden_size = 4096;
  std::int64_t intermediate_size = 11'008;
  std::int64_t num_hidden_layers = 32;
  std::int64_t num_attention_heads = 32;
  std::int64_t num_key_value_heads = 32;
  std::int64_t head_dim = 128;
  std::optional<std::int64_t> sliding_window = {};  // tokens that a token sees, where it is limited
  double attention_dropout = 0;
  double rms_norm_eps = 1e-6;
  double rope_theta = 10'000;
  double initializer_range = 0.02;
  bool tie_word_embeddings = false;
  bool has_input_bias = false, has_output_bias = false, has_mlp_bias = false;
};

class DecoderModel {
 public:
  struct Options {
    DecoderHead head = DecoderHead::kLanguageModel;
    std::int64_t labels = 2;  // of a classifier
    Attention attention = Attention::kSdpa;
    Transformers transformers = {};
    bool is_checkpointed = false;  // each layer
    bool is_training = true;
  };
  DecoderModel(Parameters& parameters, const DecoderConfig& config, const Options& options);

  // ids (B, S) int64; labels (B, S), of a classifier (B).
  Tensor Loss(const Tensor& ids, const Tensor& labels, const Call& call = {}) const;
  void Forward(const Tensor& ids, const Call& call = {}) const;

 private:
  struct Norm {
    absl::string_view name;
    Tensor weight;
    double epsilon = 0;
    bool adds_one = false;  // gemma's: a weight of 0 keeps
    Tensor operator()(const Tensor& x) const;
  };
  struct Layer {
    absl::string_view name, attention_name, mlp_name;
    LinearLayer query, key, value, output;
    LinearLayer gate, up, down;
    Norm norm_attention, norm_feed_forward;
    RotaryEmbedding rotary;  // where layers rotate for themselves
  };
  // What a forward pass has beside the hidden states.
  struct Pass {
    Tensor positions;  // (1, S)
    LayerMask mask;    // (1, 1, S, S + 1), where one is given; with flash_attn the batch's
    RotaryTables rotary;
    std::vector<Tensor>* cache;  // of keys and values; null: not kept
  };
  Norm NewNorm(Parameters& parameters, const std::string& name) const;
  Layer NewLayer(Parameters& parameters, const std::string& name) const;
  DecoderOutput Run(const Tensor& ids, const Call& call) const;
  Tensor RunLayer(const Layer& layer, const Tensor& hidden, const Pass& pass) const;
  // `held` gets what the layer holds to its end.
  Tensor Attend(const Layer& layer, const Tensor& hidden, const Pass& pass, Tensor& held) const;
  // Up to 4.47 these are no functions: the caller's key and value become the repeated ones.
  Tensor AttendEagerly(const Tensor& query, Tensor& key, Tensor& value, const Tensor& mask, Tensor& held) const;
  Tensor AttendFused(Tensor& query, Tensor& key, Tensor& value, const Tensor& mask) const;
  Tensor AttendFlash(const Tensor& query, const Tensor& key, const Tensor& value, const LayerMask& mask) const;
  Tensor RepeatKeys(const Tensor& x) const;
  Tensor FeedForward(const Layer& layer, const Tensor& x) const;
  double dropout() const { return options_.is_training ? config_.attention_dropout : 0; }
  bool rotates_once() const;

  Context& context_;
  DecoderConfig config_;
  Options options_;
  EmbeddingLayer tokens_;
  std::vector<Layer> layers_;
  Norm final_norm_;
  RotaryEmbedding rotary_;
  DecoderTop top_;
};

}  // namespace ashlar::kernels

#endif  // ASHLAR_ESTIMATOR_MODELS_DECODER_H_
