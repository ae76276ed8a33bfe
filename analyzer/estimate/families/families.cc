#include "analyzer/estimate/families/families.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace ashlar::estimate {

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

}  // namespace ashlar::estimate
