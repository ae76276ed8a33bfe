#include "estimator/models/tabformer.h"

#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/autograd/index.h"
#include "kernels/autograd/matmul.h"
#include "kernels/autograd/normalize.h"
#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/views.h"
#include "kernels/nn/parameters.h"

namespace ashlar::kernels {
namespace {

constexpr double kTorchEpsilon = 1e-5;

double Deviation(std::int64_t in, std::int64_t out) { return std::sqrt(2.0 / static_cast<double>(in + out)); }

}  // namespace

EncoderLayer::EncoderLayer(Parameters& parameters, const std::string& name, std::int64_t width, std::int64_t heads,
                           std::int64_t inner, double dropout)
    : name_(parameters.context().Named(name)),
      attention_name_(parameters.context().Named(name + ".self_attn")),
      heads_(heads),
      dropout_(dropout),
      in_weight_(parameters.New(name + ".self_attn.in_proj_weight", {3 * width, width},
                                Init::Normal(Deviation(width, width)))),
      in_bias_(parameters.New(name + ".self_attn.in_proj_bias", {3 * width}, Init::Zero())),
      out_projection_(parameters, name + ".self_attn.out_proj", width, width, Deviation(width, width)),
      up_proj_(parameters, name + ".linear1", width, inner, Deviation(width, inner)),
      down_proj_(parameters, name + ".linear2", inner, width, Deviation(inner, width)),
      norm_attention_(parameters, name + ".norm1", width, kTorchEpsilon),
      norm_feed_forward_(parameters, name + ".norm2", width, kTorchEpsilon) {}

Tensor EncoderLayer::Attend(const Tensor& x) const {
  const InModule in(x.context(), attention_name_);
  const std::int64_t length = x.size(0), batch = x.size(1), width = x.size(2), depth = width / heads_;
  std::vector<Tensor> parts;
  {
    const Tensor packed = Linear(x, in_weight_, in_bias_);
    parts = Chunk(packed, 3, -1);
  }
  for (Tensor& part : parts) {
    part = Transpose(View(Contiguous(part), {length, batch * heads_, depth}), 0, 1);
  }
  const Tensor query = DivScalar(parts[0], std::sqrt(static_cast<double>(depth)));
  Tensor weights = Bmm(query, Transpose(parts[1], -2, -1));
  weights = Softmax(weights);
  weights = Dropout(weights, dropout_);
  Tensor out = Bmm(weights, parts[2]);
  out = View(Contiguous(Transpose(out, 0, 1)), {length, batch, width});
  return out_projection_(out);
}

Tensor EncoderLayer::operator()(const Tensor& x) const {
  const InModule in(x.context(), name_);
  Tensor attended = Attend(x);
  attended = Dropout(attended, dropout_);
  Tensor sum = Add(x, attended);
  attended.reset();
  const Tensor normed = norm_attention_(sum);
  sum.reset();
  Tensor fed = up_proj_(normed);
  fed = Unary(ops::UnaryKind::kRelu, fed);
  fed = Dropout(fed, dropout_);
  fed = down_proj_(fed);
  fed = Dropout(fed, dropout_);
  sum = Add(normed, fed);
  fed.reset();
  return norm_feed_forward_(sum);
}

namespace {

constexpr double kBertEpsilon = 1e-12;

BertConfig BertOf(const TabFormerConfig& config) {
  BertConfig bert;
  bert.vocab_size = config.vocabulary();
  bert.hidden_size = config.field_width * config.columns();
  bert.num_hidden_layers = config.layers;
  bert.num_attention_heads = config.columns();
  bert.intermediate_size = config.inner;
  bert.initializer_range = config.initializer_range;
  bert.hidden_dropout_prob = bert.attention_probs_dropout_prob = config.dropout;
  return bert;
}

// A Python list of ids as the index it becomes on the device.
Tensor IdList(Context& context, std::int64_t begin, std::int64_t count, std::int64_t step) {
  Tensor out = Empty(context, {count}, DType::kInt64);
  if (context.computes()) {
    context.Do(ops::Arange{out.view(), static_cast<double>(begin), static_cast<double>(step)});
  }
  return out;
}

}  // namespace

std::int64_t TabFormerConfig::vocabulary() const {
  return std::accumulate(column_sizes.begin(), column_sizes.end(), std::int64_t{0});
}

TabFormer::TabFormer(Parameters& parameters, const TabFormerConfig& config, TabFormerOptions options)
    : context_(parameters.context()),
      config_(config),
      fields_(parameters, "tab_embeddings.word_embeddings", config.vocabulary(), config.field_width,
              config.initializer_range),
      field_encoder_(parameters, "tab_embeddings.transformer_encoder.layers.0", config.field_width, config.field_heads,
                     config.field_width, options.is_training ? config.dropout : 0),
      projection_(parameters, "tab_embeddings.lin_proj", config.field_width * config.columns(),
                  config.field_width * config.columns(), config.initializer_range),
      bert_(parameters, "tb_model.bert.", BertOf(config),
            {.has_pooler = false, .is_checkpointed = options.is_checkpointed, .is_training = options.is_training}),
      decoder_bias_(parameters.New("tb_model.cls.predictions.bias", {config.vocabulary()}, Init::Zero())),
      head_dense_(parameters, "tb_model.cls.predictions.transform.dense", config.field_width,
                  config.field_width * config.columns(), config.initializer_range),
      head_norm_(parameters, "tb_model.cls.predictions.transform.LayerNorm", config.field_width * config.columns(),
                 kBertEpsilon) {}

Tensor TabFormer::EmbedRows(const Tensor& ids) const {
  const InModule in(context_, "tab_embeddings");
  const std::int64_t batch = ids.size(0), rows = ids.size(1), columns = ids.size(2);
  Tensor embeds = fields_(ids);
  embeds = Permute(View(embeds, {batch * rows, columns, config_.field_width}), {1, 0, 2});
  embeds = field_encoder_(embeds);
  embeds = View(Contiguous(Permute(embeds, {1, 0, 2})), {batch, rows, columns * config_.field_width});
  return projection_(embeds);
}

// hidden (B, rows, columns x field_width), seen as a token a field.
Tensor TabFormer::Logits(const Tensor& hidden) const {
  const InModule in(context_, "tb_model.cls.predictions");
  const Tensor tokens = View(hidden, {hidden.size(0), config_.rows * config_.columns(), config_.field_width});
  Tensor states = head_dense_(tokens);
  states = Unary(ops::UnaryKind::kGelu, states);
  states = head_norm_(states);
  return Linear(states, bert_.word_embeddings(), decoder_bias_);
}

Tensor TabFormer::ColumnLoss(const Tensor& logits, const Tensor& labels, std::int64_t column,
                             std::int64_t first_id) const {
  const std::int64_t categories = config_.column_sizes[static_cast<std::size_t>(column)];
  const Tensor positions = IdList(context_, column, config_.rows, config_.columns());
  const Tensor ids = IdList(context_, first_id, categories, 1);
  Tensor of_column = IndexDim(logits, 1, positions);
  of_column = IndexDim(of_column, 2, ids);
  const Tensor wanted = Contiguous(Select(labels, 2, column));
  return CrossEntropy(View(of_column, {-1, categories}), View(wanted, {-1}));
}

void TabFormer::Forward(const Tensor& ids, const Call& call) const {
  const Tensor rows = EmbedRows(ids);
  const BertModel::Output out = bert_.ForwardEmbedded(rows);
  call.Return(Logits(out.hidden));
}

Tensor TabFormer::Loss(const Tensor& ids, const Tensor& labels, const Call& call) const {
  const Tensor rows = EmbedRows(ids);
  const BertModel::Output out = bert_.ForwardEmbedded(rows);
  const Tensor logits = Logits(out.hidden);
  call.Return(logits);
  Tensor total;
  std::int64_t first_id = 0;
  for (std::int64_t column = 0; column < config_.columns(); ++column) {
    const Tensor loss = ColumnLoss(logits, labels, column, first_id);
    total = total.defined() ? Add(total, loss) : AddScalar(loss, 0);
    first_id += config_.column_sizes[static_cast<std::size_t>(column)];
  }
  return total;
}

}  // namespace ashlar::kernels
