// The families of models that a description may be of, one row each: a config.json of Hugging Face by its model_type,
// or a model file of our own (docs/guide/estimate.md). A new family is a file beside this one and a row of the table.
//
// Modules, their order, and defaults of keys: transformers, models/<family>/{modeling,configuration}_<family>.py, 4.x.
#ifndef ASHLAR_ANALYZER_ESTIMATE_FAMILIES_FAMILIES_H_
#define ASHLAR_ANALYZER_ESTIMATE_FAMILIES_FAMILIES_H_

#include <cstddef>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "analyzer/estimate/config_keys.h"
#include "analyzer/estimate/model.h"

namespace ashlar::estimate {

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

#endif  // ASHLAR_ANALYZER_ESTIMATE_FAMILIES_FAMILIES_H_
