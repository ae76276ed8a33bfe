#include "analyzer/estimate/own_families.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "analyzer/estimate/parameter_list.h"

namespace ashlar::estimate {
namespace {

constexpr std::size_t kMostDims = 8;

std::vector<Column> ReadColumns(const ConfigKeys::Json& object, ConfigKeys& keys) {
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

std::vector<std::int64_t> ReadShape(const ConfigKeys::Json& entry, const std::string& path, ConfigKeys& keys) {
  std::vector<std::int64_t> out;
  const auto shape = entry.find("shape");
  if (shape == entry.end() || !shape->is_array() || shape->size() > kMostDims) {
    keys.Fail(absl::StrCat("\"", path, ".shape\" is not a list of at most ", kMostDims, " sizes"));
    return out;
  }
  double elements = 1;
  for (const ConfigKeys::Json& size : *shape) {
    if (!size.is_number_unsigned() || size.get<std::uint64_t>() > 2'147'483'647) {
      keys.Fail(absl::StrCat("\"", path, ".shape\" holds what is not a size from 0 to 2147483647"));
      return {};
    }
    out.push_back(size.get<std::int64_t>());
    elements *= static_cast<double>(out.back());
  }
  if (elements > 1e15) {
    keys.Fail(absl::StrCat("\"", path, ".shape\" is of over 10^15 elements"));
    return {};
  }
  return out;
}

}  // namespace

void DescribeTabFormer(const ConfigKeys::Json& object, ConfigKeys& keys, Model& model) {
  model.architecture = "TabFormerHierarchicalLM";
  model.columns = ReadColumns(object, keys);
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
  model.program = program;
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

void DescribeParameters(const ConfigKeys::Json& object, ConfigKeys& keys, Model& model) {
  const auto list = object.find("parameters");
  if (list == object.end() || !list->is_array() || list->empty()) {
    keys.Fail("\"parameters\" is missing: a list of {\"name\": ..., \"shape\": [...]}, one a parameter");
    return;
  }
  for (const ConfigKeys::Json& entry : *list) {
    const std::string path = absl::StrCat("parameters[", model.parameters.size(), "]");
    if (!entry.is_object()) {
      keys.Fail(absl::StrCat("\"", path, "\" is not an object with \"name\" and \"shape\""));
      return;
    }
    ConfigKeys of_entry(entry, path + ".");
    std::string name = of_entry.Text("name", path.c_str());
    if (!of_entry.status().ok()) keys.Fail(std::string(of_entry.status().message()));
    model.parameters.push_back({std::move(name), ReadShape(entry, path, keys)});
  }
}

}  // namespace ashlar::estimate
