#include <optional>
#include <string>
#include <vector>

#include "commands/shared/fields.h"
#include "estimator/program.h"
#include "estimator/report/estimate_report.h"
#include "estimator/report/lever_fields.h"

namespace ashlar::estimate {
namespace {

// Parts of the report that say something of the whole as well.
struct ShownModel {
  const Estimate& of;
};
struct AskedRun {
  const Estimate& of;
};
struct ShownLengths {
  const Lengths& lengths;
  const Estimate& of;
};
struct ShownDevice {
  const Estimate& of;
};
struct ShownRun {
  const Estimate& of;
  const DryRun& run;
};
struct DeviceParts {
  const Estimate& of;
  const DryRun& run;
};

// Elements of the parameters that are marked so.
template <bool ModelParameter::*mark>
std::int64_t Marked(const ShownModel& model) {
  std::int64_t out = 0;
  for (const ModelParameter& parameter : model.of.model.parameters) out += parameter.*mark ? parameter.count() : 0;
  return out;
}

std::vector<std::int64_t> TokensOfBatches(const ShownLengths& lengths) {
  std::vector<std::int64_t> out;
  for (const BatchShape& shape : lengths.of.run.batches) out.push_back(shape.tokens);
  return out;
}

std::optional<ShownLengths> LengthsOf(const AskedRun& asked) {
  if (!asked.of.lengths.has_value()) return std::nullopt;
  return ShownLengths{*asked.of.lengths, asked.of};
}

std::optional<const char*> LossOf(const AskedRun& asked) {
  if (!asked.of.run.is_training) return std::nullopt;
  return IsTrainedByMean(asked.of.model) ? "mean of outputs" : "head";
}

std::optional<absl::string_view> AttentionOf(const AskedRun& asked) {
  if (!asked.of.run.attention.has_value()) return std::nullopt;
  return AttentionName(*asked.of.run.attention);
}

std::optional<ShownRun> RunOf(const Estimate& of, const std::optional<DryRun>& run) {
  return run.has_value() ? std::optional(ShownRun{of, *run}) : std::nullopt;
}

// Of something that may be there with it: the value, where it is.
template <typename Owner, typename Value>
auto Of(const std::optional<Owner>& owner, Value Owner::*value) {
  return owner.has_value() ? std::optional((*owner).*value) : std::nullopt;
}

}  // namespace
}  // namespace ashlar::estimate

namespace ashlar::report {
namespace {

const std::vector<absl::string_view>& Precisions() {
  static const auto* all = new auto(WordsUpTo(estimate::Precision::kBFloat16Pure, &estimate::PrecisionName));
  return *all;
}

const std::vector<absl::string_view>& Batchings() {
  static const auto* all = new auto(WordsUpTo(estimate::Batching::kUniform, &estimate::BatchingName));
  return *all;
}

constexpr char kPrecisionMeans[] = "fp16 and bf16: autocast; pure: the model itself.";
constexpr char kHowBatched[] = "How batches are made.";
constexpr char kRestOfReserved[] = "Reserved less all the above.";

}  // namespace

template <>
const Fields<estimate::LayerSum>& FieldsOf<estimate::LayerSum>() {
  using estimate::LayerSum;
  static const auto* fields =
      new Fields<LayerSum>(Fields<LayerSum>("layer")
                               .Add("name", &LayerSum::name, "The module's name up to its first number.")
                               .AddCount("parameters", &LayerSum::parameters, "Elements.")
                               .AddCount("tensors", &LayerSum::tensors, "How many parameters by name."));
  return *fields;
}

template <>
const Fields<estimate::TiedName>& FieldsOf<estimate::TiedName>() {
  using estimate::TiedName;
  static const auto* fields = new Fields<TiedName>(Fields<TiedName>("tied")
                                                       .Add("name", &TiedName::name, "The second name.")
                                                       .Add("of", &TiedName::of, "The parameter that it is."));
  return *fields;
}

template <>
const Fields<estimate::Outlier>& FieldsOf<estimate::Outlier>() {
  using estimate::Column;
  using estimate::Outlier;
  static const auto* fields = new Fields<Outlier>(
      Fields<Outlier>("outlier")
          .Add("name", &Outlier::name, "The parameter.")
          .AddCount("shape", &Outlier::sizes, "Its sizes.")
          .AddCount("parameters", &Outlier::parameters, "Its elements.")
          .Add("is_embedding", &Outlier::is_embedding, "Whether it is a lookup table, by name and shape.")
          .AddCount(
              "parameters_of_its_rows",
              [](const auto& of) { return of.is_embedding ? std::optional(of.parameters_of_its_rows) : std::nullopt; },
              "Elements of all parameters with as many rows; null where it is no embedding.")
          .Add(
              "column", [](const auto& of) { return estimate::Of(of.column, &Column::name); },
              "The column that most rows come from; null where no columns are known.")
          .AddCount(
              "column_categories", [](const auto& of) { return estimate::Of(of.column, &Column::categories); },
              "How many rows those are.")
          .AddCount(
              "parameters_without_column",
              [](const auto& of) {
                return of.column.has_value() ? std::optional(of.parameters_without_column) : std::nullopt;
              },
              "Elements of the whole model without that column."));
  return *fields;
}

template <>
const Fields<estimate::ShownModel>& FieldsOf<estimate::ShownModel>() {
  using estimate::ModelParameter;
  using estimate::ShownModel;
  static const auto* fields = new Fields<ShownModel>(
      Fields<ShownModel>("model")
          .Add(
              "family", [](const auto& shown) { return shown.of.model.family; }, "model_type.")
          .AddNonEmpty(
              "architecture", [](const auto& shown) { return shown.of.model.architecture; },
              "The class; null for a list of parameters.")
          .AddCount(
              "parameters", [](const auto& shown) { return shown.of.model.count(); },
              "Elements of all parameters, tied ones once.")
          .AddCount("frozen_parameters", &estimate::Marked<&ModelParameter::is_frozen>,
                    "Elements without gradients and states.")
          .AddCount("host_parameters", &estimate::Marked<&ModelParameter::is_on_host>,
                    "Elements that stay on the host.")
          .Add(
              "layers", [](const auto& shown) { return shown.of.layers; }, "In the model's order.")
          .Add(
              "tied", [](const auto& shown) { return shown.of.model.tied; },
              "Names that are another parameter's tensor.")
          .Add(
              "outliers", [](const auto& shown) { return shown.of.outliers; },
              "Tensors of a fifth of all parameters or more."));
  return *fields;
}

template <>
const Fields<estimate::ShownLengths>& FieldsOf<estimate::ShownLengths>() {
  using estimate::ShownLengths;
  static const auto* fields = new Fields<ShownLengths>(
      Fields<ShownLengths>("lengths")
          .Add(
              "text", [](const auto& shown) { return shown.lengths.text; }, "As given.")
          .AddWord(
              "batching", [](const auto& shown) { return estimate::BatchingName(shown.of.batching); }, Batchings(),
              kHowBatched)
          .Add(
              "seed", [](const auto& shown) { return shown.of.seed; }, "Of the lengths and of the order.")
          .Add(
              "samples", [](const auto& shown) { return shown.lengths.samples.size(); }, "Of an epoch.")
          .AddCount(
              "longest", [](const auto& shown) { return shown.lengths.longest; },
              "Tokens that a sample may have: what fixed batches are padded to.")
          .AddCount(
              "samples_cut", [](const auto& shown) { return shown.lengths.cut; }, "Samples that were longer.")
          .AddCount(
              "epoch_steps", [](const auto& shown) { return shown.of.epoch_steps; }, "Optimizer steps of an epoch.")
          .AddCount("batch_tokens", &estimate::TokensOfBatches,
                    "Tokens that each batch of the epoch is padded to, in order."));
  return *fields;
}

template <>
const Fields<estimate::ModelSwitches>& FieldsOf<estimate::ModelSwitches>() {
  using Switches = estimate::ModelSwitches;
  static const auto* fields = new Fields<Switches>(
      Fields<Switches>("changes")
          .AddCount("vocabulary", &Switches::vocabulary,
                    "Rows of the token embeddings; null: the file's, here and below.")
          .AddCount("layers", &Switches::layers, "Of each stack.")
          .AddCount("width", &Switches::width, "Of the model.")
          .Add("ties_embeddings", &Switches::ties_embeddings, "Whether input and output embeddings are one tensor.")
          .Add("shares_embeddings", &Switches::shares_embeddings,
               "Whether encoder and decoder share their input embeddings.")
          .Add("frozen", &Switches::frozen, "Modules without gradients.")
          .Add("has_host_embeddings", &Switches::has_host_embeddings,
               "Whether the input embeddings stay on the host."));
  return *fields;
}

template <>
const Fields<estimate::AskedRun>& FieldsOf<estimate::AskedRun>() {
  using estimate::AskedRun;
  static const auto* fields = new Fields<AskedRun>(
      Fields<AskedRun>("asked")
          .AddWord(
              "mode", [](const auto& asked) { return asked.of.run.is_training ? "training" : "inference"; },
              {"training", "inference"}, "What runs.")
          .AddCount(
              "steps", [](const auto& asked) { return asked.of.run.steps; },
              "Optimizer steps or forward passes of the dry run; 0: the weights alone.")
          .AddCount(
              "batch", [](const auto& asked) { return asked.of.run.batch; }, "Samples of a batch.")
          .AddCount(
              "tokens", [](const auto& asked) { return asked.of.run.tokens; },
              "Tokens of a sample; with lengths the most that one may have.")
          .AddCount(
              "target_tokens", [](const auto& asked) { return asked.of.run.target_tokens; },
              "Of an encoder-decoder's target; 0: as many as tokens.")
          .Add("lengths", &estimate::LengthsOf, "Of samples that differ; null where all have as many tokens.")
          .AddCount(
              "accumulation", [](const auto& asked) { return asked.of.run.accumulation; }, "Batches of a step.")
          .Add(
              "is_checkpointed", [](const auto& asked) { return asked.of.run.is_checkpointed; },
              "Whether layers are recomputed in backward.")
          .Add(
              "is_padded", [](const auto& asked) { return asked.of.run.is_padded; },
              "--padded: some sample is shorter than the batch. Of lengths each batch is, whose samples differ.")
          .Add(
              "keeps_outputs", [](const auto& asked) { return asked.of.run.keeps_outputs; },
              "What a call returned lives until the next one has returned.")
          .Add("loss", &estimate::LossOf,
               "head: the model's own. mean of outputs: of a model without a head. null for inference.")
          .AddWord(
              "precision", [](const auto& asked) { return estimate::PrecisionName(asked.of.run.precision); },
              Precisions(), kPrecisionMeans)
          .AddWord("attention", &estimate::AttentionOf, WordsUpTo(kernels::Attention::kFlash, &kernels::AttentionName),
                   "How scores are made; null: the model runs one way alone, or not at all.")
          .Add(
              "optimizer",
              [](const auto& asked) {
                return asked.of.run.is_training ? std::optional(asked.of.run.optimizer) : std::nullopt;
              },
              "null for inference.")
          .Add(
              "torch", [](const auto& asked) { return asked.of.run.torch_version; }, "Whose behaviour.")
          .Add(
              "gpu", [](const auto& asked) { return asked.of.run.gpu; }, "Whose library buffers.")
          .Add(
              "conf", [](const auto& asked) { return asked.of.run.conf; }, "As for PYTORCH_CUDA_ALLOC_CONF.")
          .Add(
              "changes", [](const auto& asked) { return asked.of.model.switches; },
              "To the model that the file describes."));
  return *fields;
}

template <>
const Fields<estimate::ModelStates>& FieldsOf<estimate::ModelStates>() {
  using States = estimate::ModelStates;
  static const auto* fields =
      new Fields<States>(Fields<States>("states")
                             .AddNonEmpty("optimizer", &States::optimizer, "null: inference.")
                             .AddWord(
                                 "precision", [](const auto& of) { return estimate::PrecisionName(of.precision); },
                                 Precisions(), kPrecisionMeans)
                             .Add("weights_bytes", &States::weights_bytes, "With the 16-bit copies of autocast.")
                             .Add("gradients_bytes", &States::gradients_bytes, "0 for inference.")
                             .Add("optimizer_bytes", &States::optimizer_bytes, "0 for inference.")
                             .Add("total_bytes", [](const auto& of) { return of.total(); }, "The sum."));
  return *fields;
}

template <>
const Fields<estimate::ShownDevice>& FieldsOf<estimate::ShownDevice>() {
  using estimate::ShownDevice;
  static const auto* fields = new Fields<ShownDevice>(
      Fields<ShownDevice>("device")
          .AddNonEmpty(
              "name", [](const auto& shown) { return shown.of.device; }, "Of the table; null where none was named.")
          .Add(
              "capacity_bytes", [](const auto& shown) { return shown.of.capacity_bytes; },
              "All its memory; null: not given, the run never fails.")
          .AddNonEmpty(
              "capacity_source", [](const auto& shown) { return shown.of.capacity_source; },
              "Where that number is from.")
          .Add(
              "context_bytes", [](const auto& shown) { return shown.of.context_bytes; }, "What the CUDA context takes.")
          .Add(
              "context_source", [](const auto& shown) { return shown.of.context_source; },
              "Where that number is from."));
  return *fields;
}

template <>
const Fields<estimate::PeakMoment>& FieldsOf<estimate::PeakMoment>() {
  using Moment = estimate::PeakMoment;
  static const auto* fields = new Fields<Moment>(
      Fields<Moment>("moment")
          .AddCount("step", &Moment::step, "From 1; 0: while the model was made, or no step ran.")
          .Add(
              "phase", [](const auto& of) { return of.place.phase; },
              "model, forward, backward, optimizer step, between steps.")
          .AddNonEmpty(
              "parameter", [](const auto& of) { return of.place.owner; },
              "Of an optimizer step: whose turn it was; null where that is not known.")
          .AddNonEmpty(
              "tensor", [](const auto& of) { return of.place.tensor; },
              "What was being made; null where that is not known.")
          .AddNonEmpty(
              "module", [](const auto& of) { return of.place.module; },
              "In forward the module at work, in backward the one whose operation is being undone; null where "
              "none is.")
          .AddNonEmpty(
              "operation", [](const auto& of) { return of.place.operation; },
              "In forward PyTorch's name of it (softmax), in backward the node's (SoftmaxBackward); null where "
              "none is.")
          .Add("request_bytes", &Moment::request_bytes, "The request made there."));
  return *fields;
}

template <>
const Fields<estimate::MomentParts>& FieldsOf<estimate::MomentParts>() {
  using Parts = estimate::MomentParts;
  static const auto* fields = new Fields<Parts>(
      Fields<Parts>("parts")
          .Add("weights_bytes", &Parts::weights, "Parameters and copies of them.")
          .Add("optimizer_bytes", &Parts::optimizer, "Optimizer states.")
          .Add("gradients_bytes", &Parts::gradients, "Of parameters.")
          .Add("saved_activations_bytes", &Parts::saved_activations, "Made in a forward pass and kept for backward.")
          .Add("temporaries_bytes", &Parts::temporaries, "Gradients of activations, recomputed activations, scratch.")
          .Add("batch_bytes", &Parts::batch, "Inputs.")
          .Add("libraries_bytes", &Parts::libraries, "Workspaces kept for good."));
  return *fields;
}

template <>
const Fields<estimate::DeviceParts>& FieldsOf<estimate::DeviceParts>() {
  using Parts = estimate::DeviceParts;
  static const auto* fields = new Fields<Parts>(
      Fields<Parts>("parts")
          .AddFrom(FieldsOf<estimate::MomentParts>(),
                   [](const auto& shown) -> const estimate::MomentParts& { return shown.run.parts; })
          .Add(
              "rounding_and_cache_bytes",
              [](const auto& shown) { return shown.run.reserved_bytes - shown.run.parts.total(); }, kRestOfReserved)
          .Add(
              "driver_bytes", [](const auto& shown) { return shown.of.driver_bytes; },
              "Workspaces that the driver gives, outside allocator and context.")
          .Add("context_bytes", [](const auto& shown) { return shown.of.context_bytes; }, "The CUDA context."));
  return *fields;
}

template <>
const Fields<estimate::PhaseParts>& FieldsOf<estimate::PhaseParts>() {
  using Phase = estimate::PhaseParts;
  static const auto* fields = new Fields<Phase>(
      Fields<Phase>("phase")
          .AddCount("step", &Phase::step, "From 1; 0: while the model was made.")
          .Add("phase", &Phase::phase,
               "model, forward, backward, optimizer step: at their greatest need of all the step's batches; between "
               "steps: its end, what a step leaves.")
          .AddFrom(FieldsOf<estimate::MomentParts>(), &Phase::parts)
          .Add(
              "rounding_and_cache_bytes", [](const auto& of) { return of.reserved_bytes - of.parts.total(); },
              kRestOfReserved)
          .Add("reserved_bytes", &Phase::reserved_bytes, "Then, without driver and context."));
  return *fields;
}

template <>
const Fields<estimate::ShownRun>& FieldsOf<estimate::ShownRun>() {
  using estimate::ShownRun;
  static const auto* fields = new Fields<ShownRun>(
      Fields<ShownRun>("run")
          .Add(
              "fits", [](const auto& shown) { return shown.run.fits; },
              "false: a request failed and the run ended there.")
          .Add(
              "device_bytes", [](const auto& shown) { return shown.of.DeviceBytes(shown.run); },
              "What the device shows: context, driver and reserved, at the peak or when the request failed.")
          .Add(
              "peak_requested_bytes", [](const auto& shown) { return shown.run.peak_requested_bytes; },
              "Before rounding.")
          .Add(
              "peak_allocated_bytes", [](const auto& shown) { return shown.run.peak_allocated_bytes; }, "Block sizes.")
          .Add(
              "peak_reserved_bytes", [](const auto& shown) { return shown.run.peak_reserved_bytes; }, "Segments.")
          .Add(
              "failed_bytes",
              [](const auto& shown) { return shown.run.fits ? std::nullopt : std::optional(shown.run.failed_bytes); },
              "The request that failed; null where none did.")
          .Add(
              "requests", [](const auto& shown) { return shown.run.requests; }, "That were served.")
          .Add(
              "moment", [](const auto& shown) { return shown.run.moment; },
              "Of the greatest need, or of the failed request.")
          .Add(
              "parts", [](const auto& shown) { return estimate::DeviceParts{shown.of, shown.run}; },
              "Of device_bytes at that moment; they sum to it.")
          .Add(
              "phases", [](const auto& shown) { return shown.run.phases; },
              "The parts over time, in the order in which the phases began."));
  return *fields;
}

template <>
const Fields<estimate::ByteInterval>& FieldsOf<estimate::ByteInterval>() {
  using Interval = estimate::ByteInterval;
  static const auto* fields = new Fields<Interval>(
      Fields<Interval>("interval")
          .Add("least_bytes", &Interval::least_bytes,
               "Of both runs and, where the context is another device's, of the least context known.")
          .Add("most_bytes", &Interval::most_bytes, "The same with the most.")
          .Add("reason", &Interval::reason, "Why it is not one number."));
  return *fields;
}

template <>
const Fields<estimate::Quantiles>& FieldsOf<estimate::Quantiles>() {
  using estimate::Quantiles;
  static const auto* fields = new Fields<Quantiles>(Fields<Quantiles>("quantiles")
                                                        .Add("least", &Quantiles::least, "The lowest.")
                                                        .Add("median", &Quantiles::median, "Half are not above.")
                                                        .Add("p95", &Quantiles::p95, "95 of 100 are not above.")
                                                        .Add("most", &Quantiles::most, "The highest."));
  return *fields;
}

template <>
const Fields<estimate::ShuffleBatching>& FieldsOf<estimate::ShuffleBatching>() {
  using Batching = estimate::ShuffleBatching;
  static const auto* fields = new Fields<Batching>(
      Fields<Batching>("shuffle_batching")
          .AddWord(
              "batching", [](const auto& of) { return estimate::BatchingName(of.batching); }, Batchings(), kHowBatched)
          .Add("padded_tokens", &Batching::padded_tokens, "Of the longest batch of each shuffle.")
          .Add("peak_requested_bytes", &Batching::requested, "Over the shuffles."));
  return *fields;
}

template <>
const Fields<estimate::ShuffleRow>& FieldsOf<estimate::ShuffleRow>() {
  using Row = estimate::ShuffleRow;
  static const auto* fields = new Fields<Row>(
      Fields<Row>("shuffle_row")
          .AddWord(
              "batching", [](const auto& row) { return estimate::BatchingName(row.batching); }, Batchings(),
              kHowBatched)
          .Add("conf", &Row::conf, "As for PYTORCH_CUDA_ALLOC_CONF; empty: the default settings.")
          .Add("is_asked", &Row::is_asked, "The batching and settings of the estimate.")
          .Add(
              "memory_fraction", [](const auto& row) { return row.needs_fraction ? std::optional(1) : std::nullopt; },
              "As for set_per_process_memory_fraction, which this setting needs.")
          .Add("failed", &Row::failed, "Shuffles in which a request failed; null where the memory is not known.")
          .Add("failed_step", &Row::failed_step, "Of those the step of the first failure, from 1; null without any.")
          .Add("peak_reserved_bytes", &Row::reserved,
               "In memory without end; null for a setting that acts at a limit alone."));
  return *fields;
}

template <>
const Fields<estimate::ShuffleResult>& FieldsOf<estimate::ShuffleResult>() {
  using Result = estimate::ShuffleResult;
  static const auto* fields =
      new Fields<Result>(Fields<Result>("shuffles")
                             .AddCount("shuffles", &Result::shuffles, "Orders that were tried.")
                             .AddCount("steps", &Result::steps, "Steps that were run of each.")
                             .AddCount("epoch_steps", &Result::epoch_steps, "Steps of an epoch.")
                             .Add("batchings", &Result::batchings, "What does not depend on settings.")
                             .Add("rows", &Result::rows, "By batching, then settings: those asked for first."));
  return *fields;
}

template <>
const Fields<estimate::EstimateReport>& FieldsOf<estimate::EstimateReport>() {
  using Report = estimate::EstimateReport;
  static const auto* fields = new Fields<Report>(
      Fields<Report>("estimate")
          .Add("input", &Report::input, "The name as given; empty with --parameters.")
          .Add(
              "model", [](const auto& report) { return estimate::ShownModel{report.estimate}; },
              "What the description tells.")
          .Add(
              "asked", [](const auto& report) { return estimate::AskedRun{report.estimate}; },
              "The run that was asked for.")
          .Add(
              "states", [](const auto& report) { return report.estimate.states; },
              "Weights, gradients and optimizer states from shapes alone: what was asked for first, then others to "
              "compare with.")
          .Add(
              "rule_of_thumb_bytes", [](const auto& report) { return report.estimate.rule_of_thumb_bytes; },
              "16 bytes a parameter + 4 bytes x tokens of a sample x batch + 2 GiB.")
          .Add(
              "device", [](const auto& report) { return estimate::ShownDevice{report.estimate}; },
              "Where it would run.")
          .AddNonEmpty(
              "no_dry_run", [](const auto& report) { return report.estimate.no_dry_run; },
              "Why there is no dry run; null where there is one.")
          .Add(
              "ascending",
              [](const auto& report) { return estimate::RunOf(report.estimate, report.estimate.ascending); },
              "The dry run with the driver's addresses ascending; null without one.")
          .Add(
              "descending",
              [](const auto& report) { return estimate::RunOf(report.estimate, report.estimate.descending); },
              "The same with descending addresses.")
          .Add(
              "interval", [](const auto& report) { return report.estimate.DeviceInterval(); },
              "Of the device's bytes at the peak; null without a dry run, or where one fails.")
          .Add("shuffles", &Report::shuffles, "What other orders of the samples come to; null without --shuffles.")
          .Add("levers", &Report::levers, "What each change alone would save; null without --levers.")
          .Add("fit", &Report::fit, "What it takes to fit; null without --fit.")
          .Add(
              "notes", [](const auto& report) { return report.estimate.model.notes; },
              "What was guessed or took a default."));
  return *fields;
}

}  // namespace ashlar::report

namespace ashlar::estimate {

std::string ToJson(const EstimateReport& report) { return report::FieldsOf<EstimateReport>().ToJson(report).ToText(); }

std::string EstimateSchema() {
  return report::SchemaTextOf<EstimateReport>(
      "estimate", "The memory of a run before it starts. Sizes in bytes. Null means not known or not there.");
}

}  // namespace ashlar::estimate
