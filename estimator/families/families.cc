#include "estimator/families/families.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace ashlar::estimate {
namespace {

constexpr std::int64_t kMostValue = 2'147'483'647;

std::string Shown(const ConfigKeys::Json& value) {
  if (value.is_structured()) return absl::StrCat("an ", value.type_name());
  const std::string text = value.dump(-1, ' ', true, ConfigKeys::Json::error_handler_t::replace);
  return text.size() <= 40 ? text : text.substr(0, 37) + "...";
}

}  // namespace

const ConfigKeys::Json* ConfigKeys::Find(const char* key) const {
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void ConfigKeys::TookDefault(const char* key, const std::string& value) {
  defaults_.push_back(absl::StrCat(path_, key, " ", value));
}

void ConfigKeys::Fail(const std::string& message) {
  if (status_.ok()) status_ = absl::InvalidArgumentError(message);
}

std::int64_t ConfigKeys::CountOr(const char* key, std::int64_t derived) {
  const Json* value = Find(key);
  if (value == nullptr) return derived;
  if (value->is_number_unsigned() && value->get<std::uint64_t>() >= 1 && value->get<std::uint64_t>() <= kMostValue) {
    return static_cast<std::int64_t>(value->get<std::uint64_t>());
  }
  Fail(absl::StrCat("\"", path_, key, "\": ", Shown(*value), " is not a whole number from 1 to ", kMostValue));
  return derived;
}

std::int64_t ConfigKeys::Count(const char* key, std::int64_t default_value) {
  if (Find(key) == nullptr) TookDefault(key, absl::StrCat(default_value));
  return CountOr(key, default_value);
}

std::int64_t ConfigKeys::RequiredCount(const char* key) {
  if (Find(key) == nullptr) Fail(absl::StrCat("\"", path_, key, "\" is missing: it has no default"));
  return CountOr(key, 1);
}

double ConfigKeys::Share(const char* key, double default_value) {
  const Json* value = Find(key);
  if (value == nullptr) {
    TookDefault(key, absl::StrCat(default_value));
    return default_value;
  }
  if (value->is_number() && value->get<double>() >= 0 && value->get<double>() <= 1) return value->get<double>();
  Fail(absl::StrCat("\"", path_, key, "\": ", Shown(*value), " is not a number from 0 to 1"));
  return default_value;
}

bool ConfigKeys::Flag(const char* key, bool default_value) {
  const Json* value = Find(key);
  if (value == nullptr) return default_value;
  if (value->is_boolean()) return value->get<bool>();
  Fail(absl::StrCat("\"", path_, key, "\": ", Shown(*value), " is neither true nor false"));
  return default_value;
}

std::string ConfigKeys::Text(const char* key, const char* default_value) {
  const Json* value = Find(key);
  if (value == nullptr) return default_value;
  if (value->is_string()) return value->get<std::string>();
  Fail(absl::StrCat("\"", path_, key, "\": ", Shown(*value), " is not a text"));
  return default_value;
}

std::int64_t ConfigKeys::Labels() {
  const Json* names = Find("id2label");
  if (names != nullptr && names->is_object() && !names->empty()) return static_cast<std::int64_t>(names->size());
  return CountOr("num_labels", 2);
}

std::string ConfigKeys::Architecture() {
  const Json* list = Find("architectures");
  if (list == nullptr || (list->is_array() && list->empty())) return {};
  if (list->is_array() && list->front().is_string()) return list->front().get<std::string>();
  Fail(absl::StrCat("\"architectures\": ", Shown(*list), " is not a list of class names"));
  return {};
}

absl::Span<const Family> Families() {
  static constexpr Family kFamilies[] = {
      {"bert", "BertModel", DescribeBert},
      {"roberta", "RobertaModel", DescribeRoberta},
      {"xlm-roberta", "XLMRobertaModel", DescribeRoberta},
      {"distilbert", "DistilBertModel", DescribeDistilBert, {"vocab_size", "n_layers", "dim"}},
      {"gpt2", "GPT2Model", DescribeGpt2, {"vocab_size", "n_layer", "n_embd"}},
      {"gpt_neo", "GPTNeoModel", DescribeGptNeo, {"vocab_size", "num_layers", "hidden_size"}},
      {"llama", "LlamaModel", DescribeLlama},
      {"qwen2", "Qwen2Model", DescribeQwen2},
      {"mistral", "MistralModel", DescribeMistral},
      {"gemma", "GemmaModel", DescribeGemma},
      {"t5", "T5Model", DescribeT5, {"vocab_size", "num_layers", "d_model", "num_decoder_layers"}},
      {"tabformer", "", DescribeTabFormer, {"", "layers", "field_width"}},
      {"parameters", "", DescribeParameters, {"", "", ""}}};
  return kFamilies;
}

const Family* FamilyNamed(absl::string_view model_type) {
  for (const Family& family : Families()) {
    if (family.model_type == model_type) return &family;
  }
  return nullptr;
}

std::size_t ArchitectureOf(const Model& model, absl::Span<const absl::string_view> known, ConfigKeys& keys) {
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (model.architecture == known[i]) return i;
  }
  keys.Fail(absl::StrCat("the architecture '", model.architecture, "' of ", model.family,
                         " is not known; give --architecture one of ", absl::StrJoin(known, ", ")));
  return 0;
}

// parameters, a format of our own: a plain list of names and shapes.

namespace {

constexpr std::size_t kMostDims = 8;

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

void DescribeParameters(ConfigKeys& keys, Model& model) {
  const ConfigKeys::Json& object = keys.object();
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
