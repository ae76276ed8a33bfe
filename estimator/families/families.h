// The families of models that a description may be of, one row each: a config.json of Hugging Face by its model_type,
// or a model file of our own (docs/guide/estimate.md). A new family is a file beside this one and a row of the table.
//
// Modules, their order, and defaults of keys: transformers, models/<family>/{modeling,configuration}_<family>.py, 4.x.
#ifndef ASHLAR_ESTIMATOR_FAMILIES_FAMILIES_H_
#define ASHLAR_ESTIMATOR_FAMILIES_FAMILIES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "estimator/model.h"
#include "nlohmann/json.hpp"

namespace ashlar::estimate {

// The keys of a model's description. A missing key has transformers' default of its family, which the notes name; the
// first bad value is kept as the status, and reading goes on.
class ConfigKeys {
 public:
  using Json = nlohmann::ordered_json;

  // `path` names the object in errors: "" or "columns[2].". The object outlives it.
  explicit ConfigKeys(const Json& object, std::string path = "") : object_(object), path_(std::move(path)) {}

  // A whole number from 1 to 2^31 - 1.
  std::int64_t Count(const char* key, std::int64_t default_value);
  // The same where transformers itself derives a missing or null value from others: not noted.
  std::int64_t CountOr(const char* key, std::int64_t derived);
  // The same without a default: missing is an error.
  std::int64_t RequiredCount(const char* key);
  // From 0 to 1.
  double Share(const char* key, double default_value);
  bool Flag(const char* key, bool default_value);
  std::string Text(const char* key, const char* default_value);
  // How many labels a head tells apart: id2label's entries, num_labels, or 2.
  std::int64_t Labels();
  // The first of "architectures", or empty.
  std::string Architecture();

  const Json& object() const { return object_; }

  void Fail(const std::string& message);
  const absl::Status& status() const { return status_; }
  // "vocab_size 30522", for each key that took its default.
  const std::vector<std::string>& defaults() const { return defaults_; }

 private:
  const Json* Find(const char* key) const;  // nullptr where missing or null
  void TookDefault(const char* key, const std::string& value);

  const Json& object_;
  std::string path_;
  absl::Status status_;
  std::vector<std::string> defaults_;
};

// Makes the parameters of PyTorch's modules in the order in which PyTorch lists them.
//
//   ParameterList list(model);
//   list.set_prefix("bert.");
//   list.Linear("pooler.dense", 768, 768);   // bert.pooler.dense.weight (768, 768), bert.pooler.dense.bias (768)
class ParameterList {
 public:
  explicit ParameterList(Model& model) : model_(model) {}

  // Names given from now on begin with it.
  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }

  void Add(absl::string_view name, std::vector<std::int64_t> sizes) {
    model_.parameters.push_back({absl::StrCat(prefix_, name), std::move(sizes)});
  }
  void Linear(absl::string_view name, std::int64_t in, std::int64_t out, bool has_bias = true) {
    Add(absl::StrCat(name, ".weight"), {out, in});
    if (has_bias) Add(absl::StrCat(name, ".bias"), {out});
  }
  // transformers' Conv1D: a linear layer with its weight the other way round.
  void Conv1D(absl::string_view name, std::int64_t in, std::int64_t out) {
    Add(absl::StrCat(name, ".weight"), {in, out});
    Add(absl::StrCat(name, ".bias"), {out});
  }
  void LayerNorm(absl::string_view name, std::int64_t width) {
    Add(absl::StrCat(name, ".weight"), {width});
    Add(absl::StrCat(name, ".bias"), {width});
  }
  void RmsNorm(absl::string_view name, std::int64_t width) { Add(absl::StrCat(name, ".weight"), {width}); }
  void Embedding(absl::string_view name, std::int64_t rows, std::int64_t width) {
    Add(absl::StrCat(name, ".weight"), {rows, width});
  }
  // `of` is a whole name, without the prefix.
  void Tie(absl::string_view name, std::string of) {
    model_.tied.push_back({absl::StrCat(prefix_, name), std::move(of)});
  }

 private:
  Model& model_;
  std::string prefix_;
};

// Where a family's description has the sizes that people change; empty: it has no such key.
struct SizeKeys {
  const char* vocabulary = "vocab_size";
  const char* layers = "num_hidden_layers";
  const char* width = "hidden_size";
  const char* decoder_layers = "";  // of the second stack, where there are two
};

struct Family {
  absl::string_view model_type;  // as the description has it
  absl::string_view bare;        // the architecture where none is named; empty: a format of our own, which names none
  // Fills in the parameters of `model`, whose architecture is set, and its program; what it cannot do is the keys'
  // status.
  void (*describe)(ConfigKeys& keys, Model& model);
  SizeKeys sizes = {};
};
absl::Span<const Family> Families();
// nullptr where there is none of that name.
const Family* FamilyNamed(absl::string_view model_type);

void DescribeBert(ConfigKeys& keys, Model& model);
void DescribeRoberta(ConfigKeys& keys, Model& model);
void DescribeDistilBert(ConfigKeys& keys, Model& model);
void DescribeGpt2(ConfigKeys& keys, Model& model);
void DescribeGptNeo(ConfigKeys& keys, Model& model);
void DescribeLlama(ConfigKeys& keys, Model& model);
void DescribeQwen2(ConfigKeys& keys, Model& model);
void DescribeMistral(ConfigKeys& keys, Model& model);
void DescribeGemma(ConfigKeys& keys, Model& model);
void DescribeT5(ConfigKeys& keys, Model& model);
void DescribeTabFormer(ConfigKeys& keys, Model& model);
void DescribeParameters(ConfigKeys& keys, Model& model);

// Which of `known` the architecture is, as an index; 0, with the keys' status set, where it is none of them.
std::size_t ArchitectureOf(const Model& model, absl::Span<const absl::string_view> known, ConfigKeys& keys);

}  // namespace ashlar::estimate

#endif  // ASHLAR_ESTIMATOR_FAMILIES_FAMILIES_H_
