// The head on a decoder in transformers: nothing, a language model's head with the loss of each next token, or a class
// for each sequence, read at its last token.
#ifndef ASHLAR_ESTIMATOR_MODELS_DECODER_HEAD_H_
#define ASHLAR_ESTIMATOR_MODELS_DECODER_HEAD_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "estimator/models/attention.h"
#include "estimator/models/transformers.h"
#include "kernels/nn/parameters.h"

namespace ashlar::kernels {

enum class DecoderHead : std::uint8_t { kNone, kLanguageModel, kClassifier };

// What a family did with its logits up to 4.45, when each had a loss of its own.
enum class OwnLoss : std::uint8_t {
  kAsTheyAre,  // gpt2
  kInFloat,    // gpt_neo: for the loss
  kFloat       // llama and its kin: always
};

// What a decoder computes.
struct DecoderOutput {
  Tensor hidden;              // (B, S, D)
  std::vector<Tensor> cache;  // keys and values of all layers
};

class DecoderTop {
 public:
  DecoderTop() = default;
  struct Config {
    DecoderHead head = DecoderHead::kLanguageModel;
    std::int64_t vocabulary = 1;
    std::int64_t width = 1;
    std::int64_t labels = 2;  // of a classifier
    bool is_tied = false;
    double deviation = 0.02;  // of the first weights
    OwnLoss own_loss = OwnLoss::kAsTheyAre;
    Transformers transformers = {};
  };
  // "lm_head.weight", or the embedding where it is tied; "score.weight".
  DecoderTop(Parameters& parameters, const Config& config, const Tensor& embedding);

  // labels (B, S), of a classifier (B). Without a head the mean of the hidden states, for a loss.
  Tensor Loss(DecoderOutput output, const Tensor& labels, const Call& call) const;
  // Returns to the caller logits (B, S, vocabulary) or (B, labels), the hidden states themselves where there is no
  // head, and the cache.
  void Forward(const DecoderOutput& output, const Call& call) const;

 private:
  Tensor Logits(const Tensor& hidden) const;
  // `returned` gets what the model's call returns beside the loss, and holds it as long.
  Tensor LossOf(const Tensor& hidden, const Tensor& labels, const Call& call, Tensor& returned) const;

  Config config_;
  absl::string_view name_;
  Tensor weight_;
};

}  // namespace ashlar::kernels

#endif  // ASHLAR_ESTIMATOR_MODELS_DECODER_HEAD_H_
