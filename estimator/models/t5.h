// T5 as transformers 4.26 to 4.57 runs it eagerly (models/t5/modeling_t5.py): norms without mean in plain Python, no
// biases, one relative position bias a stack, added to the scores of all its layers, softmax in float32, the decoder's
// keys and values kept until the outputs end, as use_cache does unless blocks are checkpointed.
//
//   T5 model(parameters, config, {.head = T5Head::kLanguage});
//   Tensor loss = model.Loss(ids, labels);
#ifndef ASHLAR_ESTIMATOR_MODELS_T5_H_
#define ASHLAR_ESTIMATOR_MODELS_T5_H_

#include <cstdint>
#include <string>
#include <vector>

#include "estimator/models/attention.h"
#include "estimator/models/transformers.h"
#include "kernels/nn/layers.h"
#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

// The buckets of T5's relative positions (T5Attention._relative_position_bucket, compute_bias), an operation at a time.
struct BucketRule {
  std::int64_t queries = 1, keys = 1;
  std::int64_t buckets = 32;
  std::int64_t max_distance = 128;
  bool is_bidirectional = true;
  bool has_positions = false;  // the queries' are given, and not counted here
};

// Of a key that lies `relative` tokens behind the query.
std::int64_t BucketOf(std::int64_t relative, const BucketRule& rule);

struct Buckets {
  Tensor index;              // (queries, keys) int64
  std::vector<Tensor> held;  // locals of compute_bias, which end with it
};
Buckets RelativeBuckets(Context& context, const BucketRule& rule);

// The keys of a Hugging Face config.json; the defaults are t5-small's.
struct T5Config {
  std::int64_t vocab_size = 32'128;
  std::int64_t d_model = 512;
  std::int64_t d_kv = 64;
  std::int64_t d_ff = 2048;
  std::int64_t num_layers = 6;
  std::int64_t num_decoder_layers = 6;
  std::int64_t num_heads = 8;
  std::int64_t relative_attention_num_buckets = 32;
  std::int64_t relative_attention_max_distance = 128;
  double dropout_rate = 0.1;
  double layer_norm_epsilon = 1e-6;
  enum class Activation : std::uint8_t { kRelu, kGelu, kGeluNew, kSilu } activation = Activation::kRelu;
  bool is_gated = false;
  bool is_tied = true;            // head and embeddings; the head's input is scaled then
  bool shares_embeddings = true;  // encoder's and decoder's
};

enum class T5Head : std::uint8_t { kEncoder, kNone, kLanguage };  // T5EncoderModel, T5Model, T5ForConditionalGeneration

class T5 {
 public:
  struct Options {
    T5Head head = T5Head::kLanguage;
    bool is_training = true;       // dropout
    bool is_checkpointed = false;  // each block, where a graph is recorded; then no keys and values are kept
    Transformers transformers = {};
  };
  T5(Parameters& parameters, const T5Config& config, Options options);

  // ids (B, S), targets (B, T) int64: labels, which the model shifts for its decoder; without a language head the
  // decoder's ids, and the loss is the mean of all that is returned. The encoder alone takes no targets.
  Tensor Loss(const Tensor& ids, const Tensor& targets, const Call& call = {}) const;
  void Forward(const Tensor& ids, const Tensor& targets, const Call& call = {}) const;

 private:
  struct Norm {
    absl::string_view name;
    Tensor weight;
  };
  struct Attention {
    absl::string_view layer_name, name;
    LinearLayer query, key, value, out;
    EmbeddingLayer bias;  // (buckets, heads), of the first block
    bool has_bias = false;
    Norm norm;
  };
  struct Block {
    absl::string_view feed_name;
    Attention self, cross;
    LinearLayer up_proj, gate, down_proj;
    Norm norm;
  };
  struct Stack {
    absl::string_view name;
    bool is_decoder = false;
    EmbeddingLayer tokens;
    std::vector<Block> blocks;
    Norm final_norm;
  };
  // What a block takes and gives beside the hidden states. The biases come from the first block.
  struct Shared {
    Tensor mask, encoded, encoded_mask;
    Tensor bias, cross_bias;
    Tensor positions = {};                 // from 4.48
    std::vector<Tensor>* cache = nullptr;  // of keys and values; null: not kept
  };
  struct Output {
    Tensor encoded, hidden;
    std::vector<Tensor> cache;
  };
  Attention NewAttention(Parameters& parameters, const std::string& name, const char* attention, bool has_bias) const;
  Stack NewStack(Parameters& parameters, const std::string& name, std::int64_t layers,
                 const EmbeddingLayer* tokens) const;
  Norm NewNorm(Parameters& parameters, const std::string& name) const;
  Tensor NormInPython(const Tensor& x, const Norm& norm) const;
  Tensor PositionBias(const Attention& attention, const Stack& stack, std::int64_t queries, std::int64_t keys) const;
  // cache_position[-1] + 1, a tensor of one element; none before 4.48.
  Tensor CountedLength(bool is_asked) const;
  // `source` is what keys and values are made of; `bias` is made where it is none.
  Tensor Attend(const Attention& attention, const Stack& stack, const Tensor& hidden, const Tensor& source,
                const Tensor& mask, Tensor& bias, std::vector<Tensor>* cache) const;
  Tensor AttendLayer(const Attention& attention, const Stack& stack, const Tensor& hidden, const Tensor& encoded,
                     const Tensor& mask, Tensor& bias, std::vector<Tensor>* cache) const;
  Tensor FeedForward(const Block& block, const Tensor& hidden) const;
  Tensor RunBlock(const Stack& stack, const Block& block, const Tensor& hidden, Shared& shared) const;
  Tensor RunCheckpointed(const Stack& stack, const Block& block, const Tensor& hidden, Shared& shared) const;
  // `mask` (B, S) int64 of the encoder's side; none: of ones.
  Tensor RunStack(const Stack& stack, const Tensor& ids, const Tensor& mask, const Tensor& encoded,
                  std::vector<Tensor>* cache) const;
  Tensor Shifted(const Tensor& labels) const;
  Tensor Ones(const Dims& sizes, DType dtype) const;
  Tensor CausalMask(const Tensor& ones, DType dtype) const;
  Output Run(const Tensor& ids, const Tensor& targets, const Tensor& mask) const;
  void Return(const Output& out, const Tensor& logits, const Call& call) const;
  Tensor Logits(const Tensor& hidden) const;
  bool checkpoints() const { return options_.is_checkpointed && options_.is_training; }
  double dropout() const { return options_.is_training ? config_.dropout_rate : 0; }

  Context& context_;
  T5Config config_;
  Options options_;
  EmbeddingLayer shared_;
  Stack encoder_, decoder_;
  Tensor head_;
};

}  // namespace ashlar::kernels

#endif  // ASHLAR_ESTIMATOR_MODELS_T5_H_
