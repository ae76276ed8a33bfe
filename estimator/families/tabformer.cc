// tabformer, a format of our own: TabFormer's hierarchical BERT, of columns with their categories, a field encoder, and
// BERT over rows.
#include "estimator/models/tabformer.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "estimator/families/encoder.h"
#include "estimator/families/families.h"

namespace ashlar::estimate {
namespace {

using kernels::Context;
using kernels::DType;
using kernels::Empty;
using kernels::Part;
using kernels::Tensor;

class TabFormerProgram final : public Program {
 public:
  TabFormerProgram(kernels::Parameters& parameters, const kernels::TabFormerConfig& config,
                   const DryRunOptions& options)
      : context_(parameters.context()),
        rows_(config.rows),
        columns_(config.columns()),
        model_(parameters, config, {.is_checkpointed = options.is_checkpointed, .is_training = options.is_training}) {}
  Tensor Loss(const BatchShape& shape, std::vector<Tensor>* outputs) override {
    const kernels::Dims sizes = {shape.batch, rows_, columns_};
    const Tensor ids = Empty(context_, sizes, DType::kInt64, Part::kBatch);
    const Tensor labels = Empty(context_, sizes, DType::kInt64, Part::kBatch);
    batch_ = {ids, labels};
    return model_.Loss(ids, labels, {{}, outputs});
  }
  void Forward(const BatchShape& shape, std::vector<Tensor>* outputs) override {
    model_.Forward(Empty(context_, {shape.batch, rows_, columns_}, DType::kInt64, Part::kBatch), {{}, outputs});
  }

 private:
  Context& context_;
  std::int64_t rows_;
  std::int64_t columns_;
  kernels::TabFormer model_;
};

class TabFormerMaker final : public ProgramMaker {
 public:
  explicit TabFormerMaker(kernels::TabFormerConfig config) : config_(std::move(config)) {}

  std::unique_ptr<Program> Make(kernels::Parameters& parameters, const DryRunOptions& options) const override {
    return std::make_unique<TabFormerProgram>(parameters, config_, options);
  }
  double WidestTensor(const DryRunOptions&) const override {
    return static_cast<double>(std::max(config_.vocabulary(), config_.inner));
  }
  std::string WhyNot(const DryRunOptions&) const override { return {}; }
  std::optional<kernels::Attention> DefaultAttention(const kernels::Transformers&) const override {
    return std::nullopt;
  }
  bool is_trained_by_mean() const override { return false; }
  bool runs_in_pure_half() const override { return false; }
  bool has_attentions() const override { return false; }

 private:
  kernels::TabFormerConfig config_;
};

std::vector<Column> ReadColumns(ConfigKeys& keys) {
  const ConfigKeys::Json& object = keys.object();
  std::vector<Column> out;
  const auto columns = object.find("columns");
  if (columns == object.end() || !columns->is_array() || columns->empty()) {
    keys.Fail("\"columns\" is missing: a list of {\"name\": ..., \"categories\": ...}, one a column");
    return out;
  }
  for (const ConfigKeys::Json& column : *columns) {
    const std::string path = absl::StrCat("columns[", out.size(), "].");
    if (!column.is_object()) {
      keys.Fail(absl::StrCat("\"columns[", out.size(), "]\" is not an object with \"name\" and \"categories\""));
      return out;
    }
    ConfigKeys of_column(column, path);
    Column next;
    next.name = of_column.Text("name", absl::StrCat("column ", out.size()).c_str());
    next.categories = of_column.RequiredCount("categories");
    if (!of_column.status().ok()) keys.Fail(std::string(of_column.status().message()));
    out.push_back(std::move(next));
  }
  return out;
}

// nn.TransformerEncoderLayer.
void AddFieldEncoder(std::int64_t width, ParameterList& list) {
  list.Add("self_attn.in_proj_weight", {3 * width, width});
  list.Add("self_attn.in_proj_bias", {3 * width});
  list.Linear("self_attn.out_proj", width, width);
  list.Linear("linear1", width, width);
  list.Linear("linear2", width, width);
  list.LayerNorm("norm1", width);
  list.LayerNorm("norm2", width);
}

}  // namespace

void DescribeTabFormer(ConfigKeys& keys, Model& model) {
  model.architecture = "TabFormerHierarchicalLM";
  model.columns = ReadColumns(keys);
  const std::int64_t rows = keys.Count("rows", 10), field = keys.Count("field_width", 64);
  const std::int64_t layers = keys.Count("layers", 12), inner = keys.Count("inner", 3072);
  const std::int64_t field_heads = keys.Count("field_heads", 8);
  if (field % field_heads != 0) {
    keys.Fail(absl::StrCat("\"field_width\" ", field, " is not a multiple of \"field_heads\" ", field_heads));
  }
  if (!keys.status().ok()) return;
  const auto columns = static_cast<std::int64_t>(model.columns.size());
  const std::int64_t width = field * columns;
  std::int64_t vocabulary = 0;
  for (const Column& column : model.columns) vocabulary += column.categories;
  model.tokens_a_sample = rows * columns;
  kernels::TabFormerConfig program;
  for (const Column& column : model.columns) program.column_sizes.push_back(column.categories);
  program.rows = rows;
  program.field_width = field;
  program.field_heads = field_heads;
  program.layers = layers;
  program.inner = inner;
  program.dropout = keys.Share("dropout", 0.1);
  model.program = std::make_shared<TabFormerMaker>(std::move(program));
  ParameterList list(model);
  list.set_prefix("tab_embeddings.");
  list.Embedding("word_embeddings", vocabulary, field);
  list.set_prefix("tab_embeddings.transformer_encoder.layers.0.");
  AddFieldEncoder(field, list);
  list.set_prefix("tab_embeddings.");
  list.Linear("lin_proj", width, width);
  list.set_prefix("tb_model.bert.");
  AddBertBody({vocabulary, width, layers, inner, 512, 2}, /*has_pooler=*/false, list);
  list.set_prefix("tb_model.cls.predictions.");
  list.Add("bias", {vocabulary});
  list.Linear("transform.dense", field, width);
  list.LayerNorm("transform.LayerNorm", width);
  list.Tie("decoder.weight", "tb_model.bert.embeddings.word_embeddings.weight");
}

}  // namespace ashlar::estimate
