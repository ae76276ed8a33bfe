#include "kernels/nn/gpt2.h"

#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/autograd/cast.h"
#include "kernels/autograd/matmul.h"
#include "kernels/autograd/normalize.h"
#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/scaled_attention.h"
#include "kernels/autograd/views.h"
#include "kernels/nn/flash_forward.h"
#include "kernels/nn/key_cache.h"
#include "kernels/nn/padding_mask.h"

namespace ashlar::kernels {
namespace {

struct Conv1D {  // transformers' linear layer: weight (in, out)
  absl::string_view name;
  Tensor weight, bias;
  Tensor operator()(const Tensor& x) const {
    const InModule in(x.context(), name);
    Dims sizes = x.sizes();
    sizes.back() = weight.size(1);
    return View(Addmm(bias, View(x, {-1, x.size(-1)}), weight), sizes);
  }
};

class Gpt2Block final : public GptBlock {
 public:
  Gpt2Block(Parameters& parameters, const Gpt2Config& config, const GptOptions& options, const GptShape& shape,
            const std::string& at)
      : GptBlock(parameters, shape, at, "attn"), config_(config), options_(options) {
    const std::int64_t d = config.n_embd, inner = config.n_inner == 0 ? 4 * d : config.n_inner;
    const auto projection = [&](absl::string_view name, std::int64_t in, std::int64_t out) {
      return Conv1D{
          context().Named(absl::StrCat(at, name)),
          parameters.New(absl::StrCat(at, name, ".weight"), {in, out}, Init::Normal(config.initializer_range)),
          parameters.New(absl::StrCat(at, name, ".bias"), {out}, Init::Zero())};
    };
    packed_ = projection("attn.c_attn", d, 3 * d);
    output_ = projection("attn.c_proj", d, d);
    MakeMask({});
    MakeSecondNorm(parameters);
    up_proj_ = projection("mlp.c_fc", d, inner);
    down_proj_ = projection("mlp.c_proj", inner, d);
  }

 private:
  Tensor Attend(const Tensor& hidden, const LayerMask& mask, std::vector<Tensor>* cache) const override;
  Tensor UpProj(const Tensor& x) const override { return up_proj_(x); }
  Tensor DownProj(const Tensor& x) const override { return down_proj_(x); }
  // query, key, value (B, H, S, D); the result (B, S, H, D).
  Tensor AttendEagerly(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& bias,
                       Tensor& weights) const;
  Tensor AttendFused(const Tensor& query, const Tensor& key, const Tensor& value, const LayerMask& mask) const;
  double dropout(double p) const { return options_.is_training ? p : 0; }

  Gpt2Config config_;
  GptOptions options_;
  Conv1D packed_, output_, up_proj_, down_proj_;
};

Tensor Gpt2Block::AttendEagerly(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& bias,
                                Tensor& weights) const {
  const std::int64_t length = query.size(2);
  weights = Matmul(query, Transpose(key, -1, -2));
  {
    const Tensor divisor = Empty(context(), {}, weights.dtype());  // torch.full([], ...)
    if (context().computes()) context().Do(ops::Fill{divisor.view(), std::sqrt(static_cast<double>(value.size(-1)))});
    weights = Div(weights, divisor);
  }
  const Tensor mask = MaskOf(length);
  const Tensor lowest = ScalarOf(weights, std::numeric_limits<float>::lowest());  // a local of _attn
  weights = WhereOr(mask, weights, lowest);
  if (bias.defined()) weights = Add(weights, bias);
  weights = Softmax(weights);
  weights = Cast(weights, value.dtype());
  weights = Dropout(weights, dropout(config_.attn_pdrop));
  const Tensor out = Matmul(weights, value);
  return Contiguous(Permute(out, {0, 2, 1, 3}));
}

Tensor Gpt2Block::AttendFused(const Tensor& query_in, const Tensor& key_in, const Tensor& value_in,
                              const LayerMask& mask) const {
  const double p = dropout(config_.attn_pdrop);
  const bool is_causal = query_in.size(2) > 1;
  if (options_.attention == Attention::kFlash) {
    return FlashForward(Transpose(query_in, 1, 2), Transpose(key_in, 1, 2), Transpose(value_in, 1, 2), mask,
                        {.dropout_p = p, .is_causal = is_causal});
  }
  Tensor query = query_in, key = key_in, value = value_in;
  if (options_.transformers.sdpa_copies_inputs) {
    query = Contiguous(query);
    key = Contiguous(key);
    value = Contiguous(value);
  }
  const Tensor out = ScaledDotProductAttention(query, key, value, mask.tensor,
                                               {.dropout_p = p, .is_causal = is_causal && !mask.tensor.defined()});
  return Contiguous(Transpose(out, 1, 2));
}

Tensor Gpt2Block::Attend(const Tensor& hidden, const LayerMask& mask, std::vector<Tensor>* cache) const {
  const InModule in(context(), attention_name());
  const std::int64_t batch = hidden.size(0), length = hidden.size(1), width = hidden.size(2);
  const std::int64_t heads = config_.n_head, depth = width / heads;
  std::vector<Tensor> parts;
  {
    const Tensor packed = packed_(hidden);
    parts = Chunk(packed, 3, 2);
  }
  for (Tensor& part : parts) part = Permute(View(part, {batch, length, heads, depth}), {0, 2, 1, 3});
  UpdateCache(cache, options_.transformers.cache_joins, parts[1], parts[2]);
  Tensor weights;
  Tensor out = options_.attention == Attention::kEager
                   ? AttendEagerly(parts[0], parts[1], parts[2], mask.tensor, weights)
                   : AttendFused(parts[0], parts[1], parts[2], mask);
  out = Reshape(out, {batch, length, width});
  out = output_(out);
  out = Dropout(out, dropout(config_.resid_pdrop));
  parts.clear();
  weights.reset();
  return out;
}

GptShape ShapeOf(const Gpt2Config& config, const GptOptions& options) {
  return {.vocabulary = config.vocab_size,
          .positions = config.n_positions,
          .width = config.n_embd,
          .layers = config.n_layer,
          .norm_epsilon = config.layer_norm_epsilon,
          .deviation = config.initializer_range,
          .embedding_dropout = options.is_training ? config.embd_pdrop : 0,
          .feed_forward_dropout = options.is_training ? config.resid_pdrop : 0,
          .is_tied = config.tie_word_embeddings,
          .own_loss = OwnLoss::kAsTheyAre,
          .counts_late = options.transformers.gpt2_counts_late};
}

}  // namespace

Gpt2::Gpt2(Parameters& parameters, const Gpt2Config& config, const Options& options)
    : GptModel(parameters, ShapeOf(config, options), options, [&](const std::string& at, std::int64_t) {
        return std::make_unique<Gpt2Block>(parameters, config, options, ShapeOf(config, options), at);
      }) {}

LayerMask Gpt2::MaskOf(const Tensor& words, const Call& call) const {
  if (options().attention == Attention::kFlash) return FlashMask(call);
  if (!call.mask.defined()) return {};
  if (options().attention == Attention::kEager) return {RowBias(call.mask, words.dtype())};
  return {CausalBiasOf(call.mask, words.dtype(), /*is_fused=*/true)};
}

Tensor Gpt2::PackedMask(const Tensor& words) const {
  if (!is_checkpointed() || !options().transformers.packs_sequences) return {};
  const std::int64_t batch = words.size(0), length = words.size(1);
  if (options().attention == Attention::kSdpa) return PackedCausalMask(context(), batch, length);
  if (options().attention == Attention::kEager) return PackedCausalBias(context(), batch, length, words.dtype());
  return {};
}

}  // namespace ashlar::kernels
