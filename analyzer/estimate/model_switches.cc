#include "analyzer/estimate/model_switches.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analyzer/estimate/families/families.h"
#include "analyzer/estimate/model.h"
#include "kernels/nn/parameters.h"

namespace ashlar::estimate {
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

}  // namespace ashlar::estimate
