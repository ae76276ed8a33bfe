// The changes that people make to a model so that it takes less memory, as the flags of `ashlar estimate` have them. A
// model is described again with them: its parameters, what is frozen and what lies on the host agree with what runs.
#ifndef ASHLAR_ANALYZER_ESTIMATE_MODEL_SWITCHES_H_
#define ASHLAR_ANALYZER_ESTIMATE_MODEL_SWITCHES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace ashlar::estimate {

struct Model;

struct ModelSwitches {
  std::optional<std::int64_t> vocabulary = {};  // --vocab: rows of the token embeddings, and the head's logits
  std::optional<std::int64_t> layers = {};      // --layers: of each stack
  std::optional<std::int64_t> width = {};       // --hidden
  std::optional<bool> ties_embeddings = {};     // --tie, --untie: input and output embeddings are one tensor
  std::optional<bool> shares_embeddings = {};   // --shared-embeddings, --separate-embeddings: encoder and decoder
  std::vector<std::string> frozen = {};         // --freeze: patterns, as kernels::IsNamedBy takes them
  bool has_host_embeddings = false;             // --embeddings-cpu: input embeddings with gradients and states
  friend bool operator==(const ModelSwitches&, const ModelSwitches&) = default;
};

// "6 layers, vocabulary 5000, frozen bert.embeddings, embeddings on the host"; empty without any.
std::string SwitchesText(const ModelSwitches& switches);

// Sets the keys of a description of `family` that the switches stand for. Errors name the flag.
absl::Status SetKeys(const ModelSwitches& switches, absl::string_view family, nlohmann::ordered_json& description);

// Marks the parameters of a model whose switches are set. Errors name the flag.
absl::Status MarkParameters(Model& model);

}  // namespace ashlar::estimate

#endif  // ASHLAR_ANALYZER_ESTIMATE_MODEL_SWITCHES_H_
