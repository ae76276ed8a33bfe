#include "commands/shared/what_if_fields.h"

namespace ashlar::report {

template <>
const Fields<whatif::WhatIfRow>& FieldsOf<whatif::WhatIfRow>() {
  static const auto* fields = new Fields<whatif::WhatIfRow>(
      Fields<whatif::WhatIfRow>("what_if")
          .Add(
              "conf", [](const auto& row) { return row.conf; },
              "As for PYTORCH_CUDA_ALLOC_CONF; empty: the default settings.")
          .Add(
              "is_recorded_setting", [](const auto& row) { return row.is_baseline; },
              "The settings of the recorded run.")
          .Add(
              "peak_reserved_bytes", [](const auto& row) { return row.peak_reserved_bytes; },
              "Greatest sum of segments, bytes.")
          .Add(
              "peak_allocated_bytes", [](const auto& row) { return row.peak_allocated_bytes; },
              "Greatest sum of live blocks, bytes.")
          .Add(
              "ooms", [](const auto& row) { return row.ooms; }, "Number of failed requests.")
          .Add(
              "retries", [](const auto& row) { return row.retries; },
              "Number of requests for which the cache went back to the device.")
          .Add(
              "driver_calls", [](const auto& row) { return row.driver_calls; },
              "Number of calls that obtain or return memory.")
          .Add(
              "estimated_driver_ns", [](const auto& row) { return row.cost_ns; },
              "Nanoseconds of those calls by the simulated device's cost model.")
          .Add(
              "feasible", [](const auto& row) { return row.feasible; },
              "No request failed; null where the capacity is not known.")
          .Add(
              "gets_past", [](const auto& row) { return row.gets_past; },
              "The request that ended the recorded run is served; null where none ended it, or the capacity is not "
              "known.")
          .Add(
              "projected", [](const auto& row) { return row.projected; },
              "What would have come after that request, told from the step before; null where it is not served, or "
              "nothing is known."));
  return *fields;
}

template <>
const Fields<whatif::ProjectedPart>& FieldsOf<whatif::ProjectedPart>() {
  static const auto* fields = new Fields<whatif::ProjectedPart>(
      Fields<whatif::ProjectedPart>("projected")
          .Add(
              "requests", [](const auto& next) { return next.requests; },
              "Projected requests that were replayed; the replay ends at the first that fails.")
          .Add(
              "steps", [](const auto& next) { return next.steps; }, "Steps that they span, the cut-off one among them.")
          .Add(
              "peak_reserved_bytes", [](const auto& next) { return next.peak_reserved_bytes; },
              "Greatest sum of segments, recorded and projected, bytes.")
          .Add(
              "retries", [](const auto& next) { return next.retries; },
              "Projected requests for which the cache went back to the device.")
          .Add(
              "ooms", [](const auto& next) { return next.ooms; },
              "1 where a projected request fails, or one after them by the growth a step; else 0.")
          .Add(
              "failed_after", [](const auto& next) { return next.failed_after; },
              "Requests after the one that ended the recorded run; 1: the next; 0: none fails.")
          .Add(
              "failed_steps_later", [](const auto& next) { return next.failed_steps_later; },
              "Whole steps after it; 0: in the step that was cut off, or none fails.")
          .Add(
              "needed_bytes", [](const auto& next) { return next.needed_bytes; },
              "What is allocated then, and the request, bytes; 0: none fails.")
          .Add(
              "available_bytes", [](const auto& next) { return next.available_bytes; },
              "What the allocator can have, bytes.")
          .Add(
              "growth_bytes_per_step", [](const auto& next) { return next.growth_bytes_per_step; },
              "By which a step leaves more behind than it found, bytes.")
          .Add(
              "is_extrapolated", [](const auto& next) { return next.is_extrapolated; },
              "Whether the failure lies beyond what was replayed, and is told by that growth."));
  return *fields;
}

template <>
const Fields<whatif::Risk>& FieldsOf<whatif::Risk>() {
  static const auto* fields = new Fields<whatif::Risk>(
      Fields<whatif::Risk>("risk")
          .Add(
              "name", [](const auto& risk) { return risk.name; }, "Stable key, see docs/guide/sweep.md.")
          .AddWord(
              "level", [](const auto& risk) { return whatif::RiskLevelName(risk.level); }, RiskLevels(),
              "A note does not count in the ranking; what is not recommended is never advised.")
          .Add(
              "sentence", [](const auto& risk) { return risk.sentence; }, "What goes wrong.")
          .Add("source", [](const auto& risk) { return risk.source; }, "Where that is from."));
  return *fields;
}

std::vector<absl::string_view> RiskLevels() {
  std::vector<absl::string_view> out;
  for (const auto level : {whatif::RiskLevel::kNone, whatif::RiskLevel::kNote, whatif::RiskLevel::kCaution,
                           whatif::RiskLevel::kNotRecommended}) {
    out.push_back(whatif::RiskLevelName(level));
  }
  return out;
}

}  // namespace ashlar::report
