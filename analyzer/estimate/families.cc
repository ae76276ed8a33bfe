#include "analyzer/estimate/families.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace ashlar::estimate {

absl::Span<const Family> Families() {
  static constexpr Family kFamilies[] = {{"bert", "BertModel", DescribeBert},
                                         {"roberta", "RobertaModel", DescribeRoberta},
                                         {"xlm-roberta", "XLMRobertaModel", DescribeRoberta},
                                         {"distilbert", "DistilBertModel", DescribeDistilBert},
                                         {"gpt2", "GPT2Model", DescribeGpt2},
                                         {"gpt_neo", "GPTNeoModel", DescribeGptNeo},
                                         {"llama", "LlamaModel", DescribeLlama},
                                         {"qwen2", "Qwen2Model", DescribeQwen2},
                                         {"mistral", "MistralModel", DescribeMistral},
                                         {"gemma", "GemmaModel", DescribeGemma},
                                         {"t5", "T5Model", DescribeT5}};
  return kFamilies;
}

std::size_t ArchitectureOf(const Model& model, absl::Span<const absl::string_view> known, ConfigKeys& keys) {
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (model.architecture == known[i]) return i;
  }
  keys.Fail(absl::StrCat("the architecture '", model.architecture, "' of ", model.family,
                         " is not known; give --architecture one of ", absl::StrJoin(known, ", ")));
  return 0;
}

}  // namespace ashlar::estimate
