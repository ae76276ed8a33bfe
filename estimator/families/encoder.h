// Shared by the families of encoders: bert, roberta, xlm-roberta and distilbert, with any of their heads.
#ifndef ASHLAR_ESTIMATOR_FAMILIES_ENCODER_H_
#define ASHLAR_ESTIMATOR_FAMILIES_ENCODER_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/strings/string_view.h"
#include "estimator/families/families.h"
#include "estimator/models/encoder_task.h"
#include "estimator/program.h"

namespace ashlar::estimate {

// BertModel without and with its pooler; RoBERTa's is the same.
struct BertBody {
  std::int64_t vocabulary = 1, width = 1, layers = 1, inner = 1, positions = 1, types = 1;
};
void AddBertBody(const BertBody& body, bool has_pooler, ParameterList& list);
// The keys that bert and roberta share; `vocabulary` is the family's default.
BertBody ReadBertBody(ConfigKeys& keys, std::int64_t vocabulary);

// By the class's name behind the family's, such as "ForMaskedLM"; notes what a user should know of it.
kernels::EncoderHead EncoderHeadOf(absl::string_view kind, ConfigKeys& keys, Model& model);

// Of BERT; with the id of padding, of RoBERTa.
std::shared_ptr<const ProgramMaker> MakeBertMaker(const BertBody& body, absl::string_view kind,
                                                  std::optional<std::int64_t> padding_id, ConfigKeys& keys,
                                                  Model& model);

std::unique_ptr<Program> MakeEncoderProgram(kernels::Context& context, kernels::EncoderTask task,
                                            std::unique_ptr<kernels::EncoderForTask> model);

struct EncoderWidths {
  std::int64_t heads, inner, width, vocabulary;
};
// Scores, inner activations or logits.
double WidestOfEncoder(const EncoderWidths& of, kernels::EncoderTask task, const DryRunOptions& options);

}  // namespace ashlar::estimate

#endif  // ASHLAR_ESTIMATOR_FAMILIES_ENCODER_H_
