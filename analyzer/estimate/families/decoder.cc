#include "analyzer/estimate/families/decoder.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace ashlar::estimate {

void AddDecoderHead(kernels::DecoderHead head, const char* embeddings, std::int64_t vocabulary, std::int64_t width,
                    bool is_tied, ConfigKeys& keys, ParameterList& list) {
  list.set_prefix("");
  if (head == kernels::DecoderHead::kClassifier) list.Linear("score", width, keys.Labels(), /*has_bias=*/false);
  if (head != kernels::DecoderHead::kLanguageModel) return;
  if (is_tied) {
    list.Tie("lm_head.weight", embeddings);
  } else {
    list.Linear("lm_head", width, vocabulary, /*has_bias=*/false);
  }
}

double WidestOfDecoder(std::int64_t heads, std::int64_t inner, std::int64_t vocabulary, const DryRunOptions& options) {
  return std::max(static_cast<double>(heads) * static_cast<double>(options.tokens),
                  static_cast<double>(std::max(inner, vocabulary)));
}

std::string WhyNoDecoder(const std::string& activation, const char* has, const DryRunOptions& options) {
  if (!activation.empty() && activation != has) {
    return absl::StrCat("no dry run with the activation '", activation, "' yet: this family has ", has);
  }
  return WhyNoFlash(options);
}

}  // namespace ashlar::estimate
