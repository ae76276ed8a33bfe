#include <optional>
#include <string>

#include "commands/shared/fields.h"
#include "commands/shared/json_values.h"
#include "estimator/program.h"
#include "estimator/report/estimate_report.h"

namespace ashlar::estimate {
namespace {

using report::OrNull;
using report::TextOrNull;

report::Json ToJson(const Outlier& outlier) {
  report::Json out = {{"name", outlier.name},
                      {"shape", outlier.sizes},
                      {"parameters", outlier.parameters},
                      {"is_embedding", outlier.is_embedding},
                      {"parameters_of_its_rows",
                       outlier.is_embedding ? report::Json(outlier.parameters_of_its_rows) : report::Json(nullptr)},
                      {"column", nullptr},
                      {"column_categories", nullptr},
                      {"parameters_without_column", nullptr}};
  if (outlier.column.has_value()) {
    out["column"] = outlier.column->name;
    out["column_categories"] = outlier.column->categories;
    out["parameters_without_column"] = outlier.parameters_without_column;
  }
  return out;
}

report::Json ToJson(const ModelStates& states) {
  return {{"optimizer", TextOrNull(states.optimizer)}, {"precision", std::string(PrecisionName(states.precision))},
          {"weights_bytes", states.weights_bytes},     {"gradients_bytes", states.gradients_bytes},
          {"optimizer_bytes", states.optimizer_bytes}, {"total_bytes", states.total()}};
}

report::Json PartsJson(const Estimate& of, const DryRun& run) {
  report::Json out = PartsJson(run.parts, run.reserved_bytes);
  out["driver_bytes"] = of.driver_bytes;
  out["context_bytes"] = of.context_bytes;
  return out;
}

report::Json RunJson(const Estimate& of, const std::optional<DryRun>& run) {
  if (!run.has_value()) return nullptr;
  return {{"fits", run->fits},
          {"device_bytes", of.DeviceBytes(*run)},
          {"peak_requested_bytes", run->peak_requested_bytes},
          {"peak_allocated_bytes", run->peak_allocated_bytes},
          {"peak_reserved_bytes", run->peak_reserved_bytes},
          {"failed_bytes", run->fits ? report::Json(nullptr) : report::Json(run->failed_bytes)},
          {"requests", run->requests},
          {"moment",
           {{"step", run->moment.step},
            {"phase", run->moment.place.phase},
            {"parameter", TextOrNull(run->moment.place.owner)},
            {"tensor", TextOrNull(run->moment.place.tensor)},
            {"module", TextOrNull(run->moment.place.module)},
            {"operation", TextOrNull(run->moment.place.operation)},
            {"request_bytes", run->moment.request_bytes}}},
          {"parts", PartsJson(of, *run)},
          {"phases", PhasesJson(*run)}};
}

report::Json IntervalJson(const Estimate& of) {
  const std::optional<ByteInterval> interval = of.DeviceInterval();
  if (!interval.has_value()) return nullptr;
  return {{"least_bytes", interval->least_bytes}, {"most_bytes", interval->most_bytes}, {"reason", interval->reason}};
}

report::Json ChangesJson(const ModelSwitches& switches) {
  return {{"vocabulary", OrNull(switches.vocabulary)},
          {"layers", OrNull(switches.layers)},
          {"width", OrNull(switches.width)},
          {"ties_embeddings", OrNull(switches.ties_embeddings)},
          {"shares_embeddings", OrNull(switches.shares_embeddings)},
          {"frozen", switches.frozen},
          {"has_host_embeddings", switches.has_host_embeddings}};
}

// Elements of the parameters that are marked so.
std::int64_t Marked(const Model& model, bool ModelParameter::*mark) {
  std::int64_t out = 0;
  for (const ModelParameter& parameter : model.parameters) out += parameter.*mark ? parameter.count() : 0;
  return out;
}

report::Json LengthsJson(const Estimate& of) {
  if (!of.lengths.has_value()) return nullptr;
  report::Json batches = report::Json::Array();
  for (const BatchShape& shape : of.run.batches) batches.Append(shape.tokens);
  return {{"text", of.lengths->text},
          {"batching", std::string(BatchingName(of.batching))},
          {"seed", of.seed},
          {"samples", of.lengths->samples.size()},
          {"longest", of.lengths->longest},
          {"samples_cut", of.lengths->cut},
          {"epoch_steps", of.epoch_steps},
          {"batch_tokens", batches}};
}

report::Json AskedJson(const Estimate& of) {
  return {{"mode", of.run.is_training ? "training" : "inference"},
          {"steps", of.run.steps},
          {"batch", of.run.batch},
          {"tokens", of.run.tokens},
          {"target_tokens", of.run.target_tokens},
          {"lengths", LengthsJson(of)},
          {"accumulation", of.run.accumulation},
          {"is_checkpointed", of.run.is_checkpointed},
          {"is_padded", of.run.is_padded},
          {"keeps_outputs", of.run.keeps_outputs},
          {"loss", of.run.is_training ? report::Json(IsTrainedByMean(of.model) ? "mean of outputs" : "head")
                                      : report::Json(nullptr)},
          {"precision", std::string(PrecisionName(of.run.precision))},
          {"attention",
           of.run.attention ? report::Json(std::string(AttentionName(*of.run.attention))) : report::Json(nullptr)},
          {"optimizer", of.run.is_training ? report::Json(of.run.optimizer) : report::Json(nullptr)},
          {"torch", of.run.torch_version},
          {"gpu", of.run.gpu},
          {"conf", of.run.conf},
          {"changes", ChangesJson(of.model.switches)}};
}

report::Json ModelJson(const Estimate& of) {
  report::Json out = {{"family", of.model.family},
                      {"architecture", TextOrNull(of.model.architecture)},
                      {"parameters", of.model.count()},
                      {"frozen_parameters", Marked(of.model, &ModelParameter::is_frozen)},
                      {"host_parameters", Marked(of.model, &ModelParameter::is_on_host)},
                      {"layers", report::Json::Array()},
                      {"tied", report::Json::Array()},
                      {"outliers", report::Json::Array()}};
  for (const LayerSum& layer : of.layers) {
    out["layers"].Append({{"name", layer.name}, {"parameters", layer.parameters}, {"tensors", layer.tensors}});
  }
  for (const TiedName& tied : of.model.tied) {
    out["tied"].Append({{"name", tied.name}, {"of", tied.of}});
  }
  for (const Outlier& outlier : of.outliers) out["outliers"].Append(ToJson(outlier));
  return out;
}

}  // namespace

std::string ToJson(const EstimateReport& report) {
  const Estimate& of = report.estimate;
  report::Json out = {
      {"input", report.input},
      {"model", ModelJson(of)},
      {"asked", AskedJson(of)},
      {"states", report::Json::Array()},
      {"rule_of_thumb_bytes", of.rule_of_thumb_bytes},
      {"device",
       {{"name", TextOrNull(of.device)},
        {"capacity_bytes", OrNull(of.capacity_bytes)},
        {"capacity_source", TextOrNull(of.capacity_source)},
        {"context_bytes", of.context_bytes},
        {"context_source", of.context_source}}},
      {"no_dry_run", TextOrNull(of.no_dry_run)},
      {"ascending", RunJson(of, of.ascending)},
      {"descending", RunJson(of, of.descending)},
      {"interval", IntervalJson(of)},
      {"shuffles", report.shuffles.has_value() ? ShufflesJson(*report.shuffles) : report::Json(nullptr)},
      {"levers", report.levers.has_value() ? LeversJson(*report.levers) : report::Json(nullptr)},
      {"fit", report.fit.has_value() ? FitJson(*report.fit) : report::Json(nullptr)},
      {"notes", report::JsonOf(of.model.notes)}};
  for (const ModelStates& states : of.states) out["states"].Append(ToJson(states));
  return out.ToText();
}

}  // namespace ashlar::estimate
