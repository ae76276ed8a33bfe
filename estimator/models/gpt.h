// GPT-2 and GPT-Neo as transformers runs them.
#ifndef ASHLAR_ESTIMATOR_MODELS_GPT_H_
#define ASHLAR_ESTIMATOR_MODELS_GPT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "estimator/models/decoder_head.h"
#include "estimator/models/transformers.h"
#include "kernels/nn/layers.h"

namespace ashlar::kernels {

// Shared by GPT-2 and GPT-Neo as transformers 4.3x to 4.57 runs them: two tables of embeddings, blocks that normalise
// before attention and before the feed-forward, a causal mask buffer a layer, the tanh gelu in plain Python. A family
// brings its blocks and its masks. Keys and values are kept until the outputs end, as use_cache does, but not with
// checkpointing.
//
//   Gpt2 model(parameters, config, {.head = DecoderHead::kLanguageModel});
//   Tensor loss = model.Loss(ids);
struct GptOptions {
  bool is_checkpointed = false;  // each layer
  bool is_training = true;       // dropout
  DecoderHead head = DecoderHead::kLanguageModel;
  std::int64_t labels = 2;  // of a classifier
  Attention attention = Attention::kEager;
  Transformers transformers = {};
};

// Sizes that both families have, under neither's names.
struct GptShape {
  std::int64_t vocabulary = 1, positions = 1, width = 1, layers = 1;
  double norm_epsilon = 1e-5;
  double deviation = 0.02;       // of the first weights
  double embedding_dropout = 0;  // 0 but in training
  double feed_forward_dropout = 0;
  bool is_tied = true;
  OwnLoss own_loss = OwnLoss::kAsTheyAre;
  bool counts_late = false;  // positions behind the lookup of the words
};

// One layer. Parameters and buffers are made in the order of PyTorch's lists: a family's block makes its attention's
// after the first norm, then takes the mask, the second norm and its feed-forward.
class GptBlock {
 public:
  // `at` is "transformer.h.0."; `attention` the name of the module that attends.
  GptBlock(Parameters& parameters, const GptShape& shape, const std::string& at, absl::string_view attention);
  virtual ~GptBlock() = default;
  Tensor operator()(const Tensor& hidden, const LayerMask& mask, std::vector<Tensor>* cache) const;

 protected:
  virtual Tensor Attend(const Tensor& hidden, const LayerMask& mask, std::vector<Tensor>* cache) const = 0;
  virtual Tensor UpProj(const Tensor& x) const = 0;
  virtual Tensor DownProj(const Tensor& x) const = 0;
  void MakeMask(std::optional<std::int64_t> window);
  void MakeSecondNorm(Parameters& parameters);

  // (1, 1, length, length): true where a key may be seen.
  Tensor MaskOf(std::int64_t length) const;
  Context& context() const { return context_; }
  absl::string_view attention_name() const { return attention_name_; }

 private:
  Context& context_;
  GptShape shape_;
  std::string at_;
  absl::string_view name_, attention_name_, mlp_name_;
  LayerNormLayer norm_attention_;
  Tensor mask_;         // (1, 1, positions, positions) bool, true where a key may be seen
  Tensor masked_bias_;  // a buffer of one element that nothing reads
  LayerNormLayer norm_feed_forward_;
};

class GptModel {
 public:
  using Options = GptOptions;
  virtual ~GptModel() = default;

  // ids (B, S) int64; labels (B, S), of a classifier (B).
  Tensor Loss(const Tensor& ids, const Tensor& labels, const Call& call = {}) const;
  // The mean cross-entropy of each next token.
  Tensor Loss(const Tensor& ids) const { return Loss(ids, ids); }
  void Forward(const Tensor& ids, const Call& call = {}) const;

 protected:
  // `at` as GptBlock has it.
  using NewBlock = std::function<std::unique_ptr<GptBlock>(const std::string& at, std::int64_t layer)>;
  GptModel(Parameters& parameters, const GptShape& shape, const Options& options, const NewBlock& new_block);

  // What the blocks do not see, made before the positions are looked up.
  virtual LayerMask MaskOf(const Tensor& words, const Call& call) const = 0;
  // The same of a batch without a mask, made behind that lookup; undefined: nothing.
  virtual Tensor PackedMask(const Tensor& words) const;

  Context& context() const { return context_; }
  const Options& options() const { return options_; }
  bool is_checkpointed() const { return options_.is_checkpointed && options_.is_training; }

 private:
  DecoderOutput Run(const Tensor& ids, const Call& call) const;
  Tensor RunBlocks(Tensor hidden, const LayerMask& mask, std::vector<Tensor>& cache) const;

  Context& context_;
  GptShape shape_;
  Options options_;
  EmbeddingLayer tokens_, positions_;
  std::vector<std::unique_ptr<GptBlock>> blocks_;
  LayerNormLayer final_norm_;
  DecoderTop top_;
};

// GPT-2 as transformers 4.3x to 4.57 runs it (models/gpt2/modeling_gpt2.py; estimator/models/transformers.h has what
// differs): packed attention weights that lie the other way round, scores in the weights' dtype. estimator/models/gpt.h
// has what it shares with GPT-Neo.

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

// GPT-Neo as transformers 4.3x to 4.51 runs it (models/gpt_neo/modeling_gpt_neo.py): scores in float, layers that see
// all or the last tokens by a mask buffer; or with the package flash_attn, whose layers all see all tokens.
// estimator/models/gpt.h has what it shares with GPT-2.

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

#endif  // ASHLAR_ESTIMATOR_MODELS_GPT_H_
