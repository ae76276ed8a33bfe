#include "estimator/model.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "estimator/families/families.h"
#include "kernels/nn/parameters.h"

namespace ashlar::estimate {

std::int64_t ModelParameter::count() const {
  std::int64_t out = 1;
  for (const std::int64_t size : sizes) out *= size;
  return out;
}

std::int64_t Model::count() const {
  std::int64_t out = 0;
  for (const ModelParameter& parameter : parameters) out += parameter.count();
  return out;
}

std::string LayerOf(absl::string_view parameter_name) {
  std::vector<std::string> parts = absl::StrSplit(parameter_name, '.');
  const auto is_number = [](const std::string& part) {
    return !part.empty() && std::all_of(part.begin(), part.end(), absl::ascii_isdigit);
  };
  const auto number = std::find_if(parts.begin(), parts.end(), is_number);
  if (number != parts.end()) return absl::StrJoin(parts.begin(), number + 1, ".");
  if (parts.size() > 1) parts.pop_back();
  if (parts.size() > 2) parts.pop_back();
  return absl::StrJoin(parts, ".");
}

bool IsEmbedding(const ModelParameter& parameter) {
  if (parameter.sizes.size() != 2) return false;
  for (const absl::string_view word : {"embed", "wte", "wpe", "shared"}) {
    if (absl::StrContains(parameter.name, word)) return true;
  }
  return false;
}

namespace {

constexpr std::int64_t kMostLayersAsked = 10'000, kMostCount = 2'147'483'647;

absl::Status SetKey(const char* flag, std::optional<std::int64_t> value, std::int64_t most, absl::string_view family,
                    const char* key, nlohmann::ordered_json& description) {
  if (!value.has_value()) return absl::OkStatus();
  if (*key == '\0') {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": a model of '", family, "' has no such key",
                     family == "tabformer" ? "; its vocabulary is its columns' categories" : ""));
  }
  if (*value < 1 || *value > most) {
    return absl::InvalidArgumentError(absl::StrCat(flag, ": ", *value, " is not from 1 to ", most));
  }
  description[key] = static_cast<std::uint64_t>(*value);
  return absl::OkStatus();
}

bool IsLookupOnly(absl::string_view name) { return absl::EndsWith(name, "embed_tokens.weight"); }

// The input embeddings lead the list of parameters; a decoder may have its own.
absl::Status MarkHost(Model& model) {
  constexpr absl::string_view kFlag = "--embeddings-cpu";
  bool is_any = false;
  for (ModelParameter& parameter : model.parameters) {
    const bool is_input = &parameter == &model.parameters.front() || parameter.name == "decoder.embed_tokens.weight";
    if (!is_input || !IsEmbedding(parameter)) continue;
    for (const TiedName& tied : model.tied) {
      if (tied.of != parameter.name || IsLookupOnly(tied.name)) continue;
      return absl::InvalidArgumentError(absl::StrCat(kFlag, ": ", tied.name, " is ", parameter.name,
                                                     ", and the head computes with it on the device; with --untie the "
                                                     "input embeddings can stay on the host"));
    }
    parameter.is_on_host = is_any = true;
  }
  if (is_any) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(kFlag, ": the first parameter of this model is no embedding table"));
}

absl::Status MarkFrozen(Model& model) {
  for (const std::string& pattern : model.switches.frozen) {
    bool is_any = false;
    for (ModelParameter& parameter : model.parameters) {
      const bool is_named = kernels::IsNamedBy(parameter.name, pattern);
      parameter.is_frozen = parameter.is_frozen || is_named;
      is_any = is_any || is_named;
    }
    if (is_any) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--freeze: '", pattern, "' is in no parameter's name; give modules, such as ",
                     LayerOf(model.parameters.front().name), " or ", LayerOf(model.parameters.back().name)));
  }
  const auto is_frozen = [](const ModelParameter& parameter) { return parameter.is_frozen; };
  if (!std::all_of(model.parameters.begin(), model.parameters.end(), is_frozen)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--freeze: '", absl::StrJoin(model.switches.frozen, ","),
                                                 "' freezes every parameter: nothing is left to train"));
}

}  // namespace

std::string SwitchesText(const ModelSwitches& switches) {
  std::vector<std::string> out;
  if (switches.layers.has_value()) out.push_back(absl::StrCat(*switches.layers, " layers"));
  if (switches.width.has_value()) out.push_back(absl::StrCat("width ", *switches.width));
  if (switches.vocabulary.has_value()) out.push_back(absl::StrCat("vocabulary ", *switches.vocabulary));
  if (switches.ties_embeddings.has_value()) {
    out.push_back(*switches.ties_embeddings ? "tied embeddings" : "untied embeddings");
  }
  if (switches.shares_embeddings.has_value()) {
    out.push_back(*switches.shares_embeddings ? "shared embeddings" : "separate embeddings");
  }
  if (!switches.frozen.empty()) out.push_back(absl::StrCat("frozen ", absl::StrJoin(switches.frozen, ",")));
  if (switches.has_host_embeddings) out.push_back("embeddings on the host");
  return absl::StrJoin(out, ", ");
}

absl::Status SetKeys(const ModelSwitches& switches, absl::string_view family, nlohmann::ordered_json& description) {
  const Family* known = FamilyNamed(family);
  const SizeKeys sizes = known == nullptr ? SizeKeys() : known->sizes;
  for (const absl::Status& status :
       {SetKey("--vocab", switches.vocabulary, kMostCount, family, sizes.vocabulary, description),
        SetKey("--layers", switches.layers, kMostLayersAsked, family, sizes.layers, description),
        SetKey("--hidden", switches.width, kMostCount, family, sizes.width, description)}) {
    if (!status.ok()) return status;
  }
  const bool has_decoder = *sizes.decoder_layers != '\0';  // beside an encoder
  if (has_decoder && switches.layers.has_value()) description[sizes.decoder_layers] = description[sizes.layers];
  if (switches.ties_embeddings.has_value()) description["tie_word_embeddings"] = *switches.ties_embeddings;
  if (switches.shares_embeddings.has_value() && !has_decoder) {
    return absl::InvalidArgumentError(absl::StrCat(*switches.shares_embeddings ? "--shared" : "--separate",
                                                   "-embeddings: a model of '", family,
                                                   "' has not both an encoder and a decoder"));
  }
  return absl::OkStatus();
}

absl::Status MarkParameters(Model& model) {
  if (!model.switches.frozen.empty()) {
    if (absl::Status status = MarkFrozen(model); !status.ok()) return status;
  }
  return model.switches.has_host_embeddings ? MarkHost(model) : absl::OkStatus();
}

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
        ": known are ", KnownFamilies(), "; a list of names and shapes is \"parameters\" (ashlar guide estimate)"));
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
