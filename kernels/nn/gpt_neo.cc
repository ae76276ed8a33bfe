#include "kernels/nn/gpt_neo.h"

#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/autograd/cast.h"
#include "kernels/autograd/matmul.h"
#include "kernels/autograd/normalize.h"
#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/views.h"
#include "kernels/nn/causal_mask.h"
#include "kernels/nn/flash_forward.h"
#include "kernels/nn/key_cache.h"
#include "kernels/nn/padding_mask.h"

namespace ashlar::kernels {
namespace {

class GptNeoBlock final : public GptBlock {
 public:
  GptNeoBlock(Parameters& parameters, const GptNeoConfig& config, const GptOptions& options, const GptShape& shape,
              const std::string& at, bool is_local)
      : GptBlock(parameters, shape, at, "attn.attention"), config_(config), options_(options) {
    const std::int64_t d = config.hidden_size;
    const auto linear = [&](const char* name, std::int64_t in, std::int64_t out, bool has_bias) {
      return LinearLayer(parameters, absl::StrCat(at, name), in, out, config.initializer_range, has_bias);
    };
    key_ = linear("attn.attention.k_proj", d, d, false);
    value_ = linear("attn.attention.v_proj", d, d, false);
    query_ = linear("attn.attention.q_proj", d, d, false);
    output_ = linear("attn.attention.out_proj", d, d, true);
    MakeMask(is_local ? std::optional(config.window_size) : std::nullopt);
    MakeSecondNorm(parameters);
    up_proj_ = linear("mlp.c_fc", d, config.intermediate_size, true);
    down_proj_ = linear("mlp.c_proj", config.intermediate_size, d, true);
  }

 private:
  Tensor Attend(const Tensor& hidden, const LayerMask& mask, std::vector<Tensor>* cache) const override;
  Tensor UpProj(const Tensor& x) const override { return up_proj_(x); }
  Tensor DownProj(const Tensor& x) const override { return down_proj_(x); }
  Tensor AttendEagerly(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& bias,
                       Tensor& weights) const;
  double dropout(double p) const { return options_.is_training ? p : 0; }

  GptNeoConfig config_;
  GptOptions options_;
  LinearLayer query_, key_, value_, output_, up_proj_, down_proj_;
};

// _attn: scores and softmax in float, the weights in the values' dtype.
Tensor GptNeoBlock::AttendEagerly(const Tensor& query_in, const Tensor& key_in, const Tensor& value, const Tensor& bias,
                                  Tensor& weights) const {
  const Tensor query = Cast(query_in, DType::kFloat32), key = Cast(key_in, DType::kFloat32);
  const std::int64_t length = query.size(2);
  weights = Matmul(query, Transpose(key, -1, -2));
  const Tensor mask = MaskOf(length);
  const Tensor lowest = ScalarOf(weights, std::numeric_limits<float>::lowest());  // a local of _attn
  weights = WhereOr(mask, weights, lowest);
  if (bias.defined()) weights = Add(weights, Slice(bias, 3, 0, length));
  weights = Softmax(weights);
  weights = Cast(weights, value.dtype());
  weights = Dropout(weights, dropout(config_.attention_dropout));
  return Matmul(weights, value);
}

Tensor GptNeoBlock::Attend(const Tensor& hidden, const LayerMask& mask, std::vector<Tensor>* cache) const {
  const InModule in(context(), attention_name());
  const std::int64_t batch = hidden.size(0), length = hidden.size(1), width = hidden.size(2);
  const auto by_head = [&](const Tensor& projected) {
    return Permute(View(projected, {batch, length, config_.num_heads, width / config_.num_heads}), {0, 2, 1, 3});
  };
  Tensor query = query_(hidden);
  Tensor key = key_(hidden);
  Tensor value = value_(hidden);
  query = by_head(query);
  key = by_head(key);
  value = by_head(value);
  UpdateCache(cache, options_.transformers.cache_joins, key, value);
  Tensor weights, out;
  if (options_.attention == Attention::kFlash) {
    out = FlashForward(Transpose(query, 1, 2), Transpose(key, 1, 2), Transpose(value, 1, 2), mask,
                       {.dropout_p = dropout(config_.attention_dropout), .is_causal = length > 1, .scale = 1});
    out = Reshape(out, {batch, length, width});
  } else {
    out = AttendEagerly(query, key, value, mask.tensor, weights);
    out = View(Contiguous(Permute(out, {0, 2, 1, 3})), {batch, length, width});
  }
  out = output_(out);
  out = Dropout(out, dropout(config_.resid_dropout));
  Release(query, key, value, weights);
  return out;
}

GptShape ShapeOf(const GptNeoConfig& config, const GptOptions& options) {
  return {.vocabulary = config.vocab_size,
          .positions = config.max_position_embeddings,
          .width = config.hidden_size,
          .layers = config.num_layers,
          .norm_epsilon = config.layer_norm_epsilon,
          .deviation = config.initializer_range,
          .embedding_dropout = options.is_training ? config.embed_dropout : 0,
          .feed_forward_dropout = options.is_training ? config.resid_dropout : 0,
          .is_tied = config.tie_word_embeddings,
          .own_loss = OwnLoss::kInFloat,
          .counts_late = options.transformers.gpt_neo_counts_late};
}

}  // namespace

GptNeo::GptNeo(Parameters& parameters, const GptNeoConfig& config, const Options& options)
    : GptModel(parameters, ShapeOf(config, options), options, [&](const std::string& at, std::int64_t layer) {
        const auto index = static_cast<std::size_t>(layer);
        const bool is_local = index < config.is_local.size() && config.is_local[index];
        return std::make_unique<GptNeoBlock>(parameters, config, options, ShapeOf(config, options), at, is_local);
      }) {}

LayerMask GptNeo::MaskOf(const Tensor& words, const Call& call) const {
  if (options().attention == Attention::kFlash) return FlashMask(call);
  const bool adds_mask = options().transformers.gpt_neo_adds_mask;
  if (!call.mask.defined()) {
    if (!adds_mask) return {};
    return {CausalBias(context(), words.size(1), words.dtype())};
  }
  return {adds_mask ? CausalBiasOf(call.mask, words.dtype(), /*is_fused=*/false) : RowBias(call.mask, words.dtype())};
}

}  // namespace ashlar::kernels
