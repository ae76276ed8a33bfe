#include "analyzer/estimate/model_file.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analyzer/estimate/families/families.h"

namespace ashlar::estimate {
namespace {

using Json = ConfigKeys::Json;

constexpr double kMostElements = 1e15;
constexpr std::int64_t kMostLayers = 10'000;
constexpr int kMostDepth = 64;  // values are copied level by level

absl::StatusOr<Json> ParseObject(absl::string_view bytes) {
  try {
    bool is_deep = false;
    Json json = Json::parse(bytes.begin(), bytes.end(), [&](int depth, Json::parse_event_t, Json&) {
      is_deep = is_deep || depth > kMostDepth;
      return !is_deep;
    });
    if (is_deep)
      return absl::InvalidArgumentError(absl::StrCat("JSON of over ", kMostDepth, " levels is no config.json"));
    if (json.is_object()) return json;
    return absl::InvalidArgumentError("this is JSON, but not an object: a config.json begins with {");
  } catch (const Json::parse_error& error) {
    const absl::string_view before = bytes.substr(0, error.byte > 0 ? error.byte - 1 : 0);
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const std::size_t newline = before.rfind('\n');
    const std::size_t column = before.size() - (newline == absl::string_view::npos ? 0 : newline + 1) + 1;
    return absl::InvalidArgumentError(
        absl::StrCat(line, ":", column, ": this is not JSON here; give a Hugging Face config.json or a model file"));
  } catch (const Json::out_of_range&) {
    return absl::InvalidArgumentError("a number in this JSON is beyond those of double precision");
  }
}

std::string KnownFamilies() {
  return absl::StrJoin(Families(), ", ",
                       [](std::string* out, const Family& family) { absl::StrAppend(out, family.model_type); });
}

// No description may make more parameters than a program can hold in mind.
absl::Status CheckLayers(const Json& json) {
  for (const char* key : {"num_hidden_layers", "n_layers", "n_layer", "num_layers", "num_decoder_layers", "layers"}) {
    const auto found = json.find(key);
    if (found != json.end() && found->is_number_unsigned() && found->get<std::uint64_t>() > kMostLayers) {
      return absl::InvalidArgumentError(absl::StrCat("\"", key, "\" is above ", kMostLayers));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSize(const Model& model) {
  double elements = 0;
  for (const ModelParameter& parameter : model.parameters) {
    double count = 1;
    for (const std::int64_t size : parameter.sizes) count *= static_cast<double>(size);
    elements += count;
  }
  if (elements <= kMostElements) return absl::OkStatus();
  return absl::InvalidArgumentError("the description makes over 10^15 parameters");
}

void NoteDefaults(const ConfigKeys& keys, Model& model) {
  if (keys.defaults().empty()) return;
  model.notes.push_back(
      {"defaults",
       absl::StrCat("missing keys have the defaults of ", model.family, ": ", absl::StrJoin(keys.defaults(), ", ")),
       keys.defaults().size()});
}

void Describe(const Family& family, const ModelFileOptions& options, ConfigKeys& keys, Model& model) {
  if (family.bare.empty()) return family.describe(keys, model);
  model.architecture = options.architecture.empty() ? keys.Architecture() : options.architecture;
  if (model.architecture.empty()) {
    model.architecture = std::string(family.bare);
    model.notes.push_back({"no_architecture",
                           absl::StrCat("\"architectures\" names none: taken as ", family.bare,
                                        ", without a head; --architecture says otherwise"),
                           1});
  }
  family.describe(keys, model);
}

absl::StatusOr<Model> ReadObject(Json json, const ModelFileOptions& options) {
  ConfigKeys keys(json);
  Model model;
  model.family = keys.Text("model_type", "");
  model.switches = options.switches;
  if (!keys.status().ok()) return keys.status();
  if (absl::Status status = SetKeys(options.switches, model.family, json); !status.ok()) return status;
  if (absl::Status status = CheckLayers(json); !status.ok()) return status;
  const Family* family = FamilyNamed(model.family);
  if ((family == nullptr || family->bare.empty()) && !model.family.empty() && !options.architecture.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("--architecture does not go with model_type '", model.family, "'"));
  }
  if (family == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        model.family.empty() ? "\"model_type\" is missing"
                             : absl::StrCat("model_type '", model.family, "' is not known"),
        ": known are ", KnownFamilies(), "; a list of names and shapes is \"parameters\" (docs/guide/estimate.md)"));
  }
  Describe(*family, options, keys, model);
  if (!keys.status().ok()) return keys.status();
  if (absl::Status status = CheckSize(model); !status.ok()) return status;
  NoteDefaults(keys, model);
  if (absl::Status status = MarkParameters(model); !status.ok()) return status;
  return model;
}

// That input and output embeddings are one or two means something only where there are both.
absl::Status CheckTies(const Json& json, ModelFileOptions options, const Model& model) {
  if (!options.switches.ties_embeddings.has_value()) return absl::OkStatus();
  const bool ties = *options.switches.ties_embeddings;
  options.switches.ties_embeddings = !ties;
  options.switches.has_host_embeddings = false;
  const absl::StatusOr<Model> other = ReadObject(json, options);
  if (!other.ok()) return other.status();
  if (other->tied.size() != model.tied.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      ties ? "--tie" : "--untie", ": ", model.architecture.empty() ? "a list of parameters" : model.architecture,
      " has no output embeddings that could be its input embeddings"));
}

}  // namespace

absl::StatusOr<Model> ReadModel(absl::string_view bytes, const ModelFileOptions& options) {
  const absl::StatusOr<Json> json = ParseObject(bytes);
  if (!json.ok()) return json.status();
  absl::StatusOr<Model> model = ReadObject(*json, options);
  if (!model.ok()) return model;
  if (absl::Status status = CheckTies(*json, options, *model); !status.ok()) return status;
  model->source = std::make_shared<const ModelSource>(ModelSource{std::string(bytes), options.architecture});
  return model;
}

absl::StatusOr<Model> SwitchedModel(const Model& model, const ModelSwitches& switches) {
  if (switches == model.switches) return model;
  if (model.source != nullptr) return ReadModel(model.source->bytes, {model.source->architecture, switches});
  return absl::InvalidArgumentError(
      absl::StrCat("of a model of which only --parameters is known nothing can be changed: ", SwitchesText(switches)));
}

absl::StatusOr<Model> ModelOfCount(std::int64_t parameters) {
  if (parameters < 1 || static_cast<double>(parameters) > kMostElements) {
    return absl::InvalidArgumentError(absl::StrCat("--parameters: ", parameters, " is not from 1 to 10^15"));
  }
  Model model;
  model.family = "parameters";
  model.parameters.push_back({"all parameters", {parameters}});
  return model;
}

}  // namespace ashlar::estimate
