// The families of models that a config.json of Hugging Face may describe.
// Each function fills in the parameters of `model`, whose architecture is set; what it cannot do is the keys' status.
// Modules, their order, and defaults of keys: transformers, models/<family>/{modeling,configuration}_<family>.py, 4.x.
#ifndef ASHLAR_ANALYZER_ESTIMATE_FAMILIES_H_
#define ASHLAR_ANALYZER_ESTIMATE_FAMILIES_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "analyzer/estimate/config_keys.h"
#include "analyzer/estimate/model.h"

namespace ashlar::estimate {

struct Family {
  absl::string_view model_type;  // as config.json has it
  absl::string_view bare;        // the architecture where none is named
  void (*describe)(ConfigKeys& keys, Model& model);
};
absl::Span<const Family> Families();

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

// Which of `known` the architecture is, as an index; 0, with the keys' status set, where it is none of them.
std::size_t ArchitectureOf(const Model& model, absl::Span<const absl::string_view> known, ConfigKeys& keys);

}  // namespace ashlar::estimate

#endif  // ASHLAR_ANALYZER_ESTIMATE_FAMILIES_H_
