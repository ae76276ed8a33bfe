#include <optional>
#include <string>

#include "analyzer/estimate/program.h"
#include "analyzer/report/estimate_report.h"
#include "analyzer/report/json_values.h"

namespace ashlar::report {
namespace {

using estimate::DryRun;
using estimate::Estimate;

Json ToJson(const estimate::Outlier& outlier) {
  Json out = {{"name", outlier.name},
              {"shape", outlier.sizes},
              {"parameters", outlier.parameters},
              {"is_embedding", outlier.is_embedding},
              {"parameters_of_its_rows", outlier.is_embedding ? Json(outlier.parameters_of_its_rows) : Json(nullptr)},
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

Json ToJson(const estimate::ModelStates& states) {
  return {{"optimizer", TextOrNull(states.optimizer)}, {"precision", std::string(PrecisionName(states.precision))},
          {"weights_bytes", states.weights_bytes},     {"gradients_bytes", states.gradients_bytes},
          {"optimizer_bytes", states.optimizer_bytes}, {"total_bytes", states.total()}};
}

Json PartsJson(const Estimate& of, const DryRun& run) {
  Json out = report::PartsJson(run.parts, run.reserved_bytes);
  out["driver_bytes"] = of.driver_bytes;
  out["context_bytes"] = of.context_bytes;
  return out;
}

Json RunJson(const Estimate& of, const std::optional<DryRun>& run) {
  if (!run.has_value()) return nullptr;
  return {{"fits", run->fits},
          {"device_bytes", of.DeviceBytes(*run)},
          {"peak_requested_bytes", run->peak_requested_bytes},
          {"peak_allocated_bytes", run->peak_allocated_bytes},
          {"peak_reserved_bytes", run->peak_reserved_bytes},
          {"failed_bytes", run->fits ? Json(nullptr) : Json(run->failed_bytes)},
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

Json IntervalJson(const Estimate& of) {
  const std::optional<estimate::Interval> interval = of.DeviceInterval();
  if (!interval.has_value()) return nullptr;
  return {{"least_bytes", interval->least_bytes}, {"most_bytes", interval->most_bytes}, {"reason", interval->reason}};
}

Json ChangesJson(const estimate::ModelSwitches& switches) {
  return {{"vocabulary", OrNull(switches.vocabulary)},
          {"layers", OrNull(switches.layers)},
          {"width", OrNull(switches.width)},
          {"ties_embeddings", OrNull(switches.ties_embeddings)},
          {"shares_embeddings", OrNull(switches.shares_embeddings)},
          {"frozen", switches.frozen},
          {"has_host_embeddings", switches.has_host_embeddings}};
}

// Elements of the parameters that are marked so.
std::int64_t Marked(const estimate::Model& model, bool estimate::ModelParameter::*mark) {
  std::int64_t out = 0;
  for (const estimate::ModelParameter& parameter : model.parameters) out += parameter.*mark ? parameter.count() : 0;
  return out;
}

Json LengthsJson(const Estimate& of) {
  if (!of.lengths.has_value()) return nullptr;
  Json batches = Json::Array();
  for (const estimate::BatchShape& shape : of.run.batches) batches.Append(shape.tokens);
  return {{"text", of.lengths->text},
          {"batching", std::string(BatchingName(of.batching))},
          {"seed", of.seed},
          {"samples", of.lengths->samples.size()},
          {"longest", of.lengths->longest},
          {"samples_cut", of.lengths->cut},
          {"epoch_steps", of.epoch_steps},
          {"batch_tokens", batches}};
}

Json AskedJson(const Estimate& of) {
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
          {"loss", of.run.is_training ? Json(IsTrainedByMean(of.model) ? "mean of outputs" : "head") : Json(nullptr)},
          {"precision", std::string(PrecisionName(of.run.precision))},
          {"attention", of.run.attention ? Json(std::string(AttentionName(*of.run.attention))) : Json(nullptr)},
          {"optimizer", of.run.is_training ? Json(of.run.optimizer) : Json(nullptr)},
          {"torch", of.run.torch_version},
          {"gpu", of.run.gpu},
          {"conf", of.run.conf},
          {"changes", ChangesJson(of.model.switches)}};
}

Json ModelJson(const Estimate& of) {
  Json out = {{"family", of.model.family},
              {"architecture", TextOrNull(of.model.architecture)},
              {"parameters", of.model.count()},
              {"frozen_parameters", Marked(of.model, &estimate::ModelParameter::is_frozen)},
              {"host_parameters", Marked(of.model, &estimate::ModelParameter::is_on_host)},
              {"layers", Json::Array()},
              {"tied", Json::Array()},
              {"outliers", Json::Array()}};
  for (const estimate::LayerSum& layer : of.layers) {
    out["layers"].Append({{"name", layer.name}, {"parameters", layer.parameters}, {"tensors", layer.tensors}});
  }
  for (const estimate::TiedName& tied : of.model.tied) {
    out["tied"].Append({{"name", tied.name}, {"of", tied.of}});
  }
  for (const estimate::Outlier& outlier : of.outliers) out["outliers"].Append(ToJson(outlier));
  return out;
}

}  // namespace

std::string ToJson(const EstimateReport& report) {
  const Estimate& of = report.estimate;
  Json out = {{"input", report.input},
              {"model", ModelJson(of)},
              {"asked", AskedJson(of)},
              {"states", Json::Array()},
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
              {"shuffles", report.shuffles.has_value() ? ShufflesJson(*report.shuffles) : Json(nullptr)},
              {"levers", report.levers.has_value() ? LeversJson(*report.levers) : Json(nullptr)},
              {"fit", report.fit.has_value() ? FitJson(*report.fit) : Json(nullptr)},
              {"notes", Json::Array()}};
  for (const estimate::ModelStates& states : of.states) out["states"].Append(ToJson(states));
  for (const trace::Note& note : of.model.notes) {
    out["notes"].Append({{"name", note.name}, {"message", note.message}, {"count", note.count}});
  }
  return out.ToText();
}

}  // namespace ashlar::report
