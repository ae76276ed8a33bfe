// A model that was built to be run without arithmetic: what a step of a dry run asks of it.
//
//   std::unique_ptr<Program> program = MakeProgram(parameters, model, options);
//   kernels::Tensor loss = program->Loss({.batch = 8, .tokens = 512});
#ifndef ASHLAR_ESTIMATOR_PROGRAM_H_
#define ASHLAR_ESTIMATOR_PROGRAM_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "estimator/dry_run.h"
#include "estimator/model.h"
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

// What a model's family knows about running it: made with the model, by the file of its family (families/families.h).
class ProgramMaker {
 public:
  virtual ~ProgramMaker() = default;
  // `options` outlives the program, as do the parameters.
  virtual std::unique_ptr<Program> Make(kernels::Parameters& parameters, const DryRunOptions& options) const = 0;
  // Elements a token of the widest tensor of a step: scores, inner activations or logits.
  virtual double WidestTensor(const DryRunOptions& options) const = 0;
  // Empty, or why this one cannot run what is asked.
  virtual std::string WhyNot(const DryRunOptions& options) const = 0;
  // How it attends where the options leave it open; nullopt: in one way alone.
  virtual std::optional<kernels::Attention> DefaultAttention(const kernels::Transformers& versions) const = 0;
  // Whether it has no head, and so no loss of its own.
  virtual bool is_trained_by_mean() const = 0;
  virtual bool runs_in_pure_half() const { return true; }
  virtual bool has_attentions() const { return true; }  // other than eager; WhyNot may still say no to one
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

}  // namespace ashlar::estimate

#endif  // ASHLAR_ESTIMATOR_PROGRAM_H_
