// A model that was built to be run without arithmetic: what a step of a dry run asks of it.
//
//   std::unique_ptr<Program> program = MakeProgram(parameters, model, options);
//   kernels::Tensor loss = program->Loss({.batch = 8, .tokens = 512});
#ifndef ASHLAR_ANALYZER_ESTIMATE_PROGRAM_H_
#define ASHLAR_ANALYZER_ESTIMATE_PROGRAM_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "analyzer/estimate/dry_run_options.h"
#include "analyzer/estimate/model.h"
#include "kernels/nn/parameters.h"

namespace ashlar::estimate {

class Program {
 public:
  virtual ~Program() = default;
  // Of a new batch of that shape, which it allocates; a model whose description fixes its tokens ignores theirs.
  // `outputs`, where not null, gets what the call returns beside the loss.
  virtual kernels::Tensor Loss(const BatchShape& shape, std::vector<kernels::Tensor>* outputs) = 0;
  virtual void Forward(const BatchShape& shape, std::vector<kernels::Tensor>* outputs) = 0;
  // The caller's variable for the batch of Loss ends: behind the backward pass, as in the Trainer of transformers.
  void EndBatch() { batch_.clear(); }

 protected:
  std::vector<kernels::Tensor> batch_;
};

// Empty where there is a program for what is asked, else one sentence that says which there is none for.
std::string WhyNoProgram(const Model& model, const DryRunOptions& options);

// Whether the model has no head and so no loss of its own: it is trained by the mean of what it returns.
bool IsTrainedByMean(const Model& model);

// How the program attends where the options leave it open; nullopt for one that attends in one way alone.
std::optional<kernels::Attention> DefaultAttention(const Model& model, const DryRunOptions& options);

// Of a model that WhyNoProgram has nothing against. `options` outlives it.
std::unique_ptr<Program> MakeProgram(kernels::Parameters& parameters, const Model& model, const DryRunOptions& options);

// What the asked versions of torch and transformers do.
absl::StatusOr<kernels::Transformers> VersionsFor(const DryRunOptions& options);

// Empty, or why --attention flash cannot run, whatever the model.
std::string WhyNoFlash(const DryRunOptions& options);

// The batch's attention mask, (B, S) int64; none where all samples are as long as the batch.
kernels::Tensor MaskOf(kernels::Context& context, const BatchShape& shape);

// Elements a token of the widest tensor of a step: scores, inner activations or logits.
double WidestTensor(const Model& model, const DryRunOptions& options);

// The programs of single families, each in its own file.
std::unique_ptr<Program> MakeProgramOf(const BertProgramConfig& config, kernels::Parameters& parameters,
                                       const DryRunOptions& options);
std::unique_ptr<Program> MakeProgramOf(const DistilBertProgramConfig& config, kernels::Parameters& parameters,
                                       const DryRunOptions& options);
std::unique_ptr<Program> MakeProgramOf(const T5ProgramConfig& config, kernels::Parameters& parameters,
                                       const DryRunOptions& options);
std::unique_ptr<Program> MakeProgramOf(const kernels::TabFormerConfig& config, kernels::Parameters& parameters,
                                       const DryRunOptions& options);
std::unique_ptr<Program> MakeProgramOf(const LlamaProgramConfig& config, kernels::Parameters& parameters,
                                       const DryRunOptions& options);
std::unique_ptr<Program> MakeProgramOf(const Gpt2ProgramConfig& config, kernels::Parameters& parameters,
                                       const DryRunOptions& options);
std::unique_ptr<Program> MakeProgramOf(const GptNeoProgramConfig& config, kernels::Parameters& parameters,
                                       const DryRunOptions& options);
double WidestTensorOf(const LlamaProgramConfig& config, const DryRunOptions& options);
double WidestTensorOf(const Gpt2ProgramConfig& config, const DryRunOptions& options);
double WidestTensorOf(const GptNeoProgramConfig& config, const DryRunOptions& options);
double WidestTensorOf(const BertProgramConfig& config, const DryRunOptions& options);
double WidestTensorOf(const DistilBertProgramConfig& config, const DryRunOptions& options);
double WidestTensorOf(const T5ProgramConfig& config, const DryRunOptions& options);
double WidestTensorOf(const kernels::TabFormerConfig& config, const DryRunOptions& options);
// Empty, or why this one cannot run what is asked.
std::string WhyNoProgramOf(const LlamaProgramConfig& config, const DryRunOptions& options);
std::string WhyNoProgramOf(const Gpt2ProgramConfig& config, const DryRunOptions& options);
std::string WhyNoProgramOf(const GptNeoProgramConfig& config, const DryRunOptions& options);
std::string WhyNoProgramOf(const BertProgramConfig& config, const DryRunOptions& options);
std::string WhyNoProgramOf(const DistilBertProgramConfig& config, const DryRunOptions& options);
std::string WhyNoProgramOf(const T5ProgramConfig& config, const DryRunOptions& options);
std::string WhyNoProgramOf(const kernels::TabFormerConfig& config, const DryRunOptions& options);

}  // namespace ashlar::estimate

#endif  // ASHLAR_ANALYZER_ESTIMATE_PROGRAM_H_
