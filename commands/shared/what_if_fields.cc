#include "commands/shared/what_if_fields.h"

namespace ashlar::report {

template <>
const Fields<whatif::WhatIfRow>& FieldsOf<whatif::WhatIfRow>() {
  static const auto* fields = new Fields<whatif::WhatIfRow>(
      Fields<whatif::WhatIfRow>("what_if")
          .Add("conf", &whatif::WhatIfRow::conf, "As for PYTORCH_CUDA_ALLOC_CONF; empty: the default settings.")
          .Add("is_recorded_setting", &whatif::WhatIfRow::is_baseline, "The settings of the recorded run.")
          .Add("peak_reserved_bytes", &whatif::WhatIfRow::peak_reserved_bytes, "Greatest sum of segments, bytes.")
          .Add("peak_allocated_bytes", &whatif::WhatIfRow::peak_allocated_bytes, "Greatest sum of live blocks, bytes.")
          .Add("ooms", &whatif::WhatIfRow::ooms, "Number of failed requests.")
          .Add("retries", &whatif::WhatIfRow::retries,
               "Number of requests for which the cache went back to the device.")
          .Add("driver_calls", &whatif::WhatIfRow::driver_calls, "Number of calls that obtain or return memory.")
          .Add("estimated_driver_ns", &whatif::WhatIfRow::cost_ns,
               "Nanoseconds of those calls by the simulated device's cost model.")
          .Add("feasible", &whatif::WhatIfRow::feasible, "No request failed; null where the capacity is not known.")
          .Add("gets_past", &whatif::WhatIfRow::gets_past,
               "The request that ended the recorded run is served; null where none ended it, or the capacity is not "
               "known.")
          .Add("projected", &whatif::WhatIfRow::projected,
               "What would have come after that request, told from the step before; null where it is not served, or "
               "nothing is known."));
  return *fields;
}

template <>
const Fields<whatif::ProjectedPart>& FieldsOf<whatif::ProjectedPart>() {
  static const auto* fields = new Fields<whatif::ProjectedPart>(
      Fields<whatif::ProjectedPart>("projected")
          .Add("requests", &whatif::ProjectedPart::requests,
               "Projected requests that were replayed; the replay ends at the first that fails.")
          .Add("steps", &whatif::ProjectedPart::steps, "Steps that they span, the cut-off one among them.")
          .Add("peak_reserved_bytes", &whatif::ProjectedPart::peak_reserved_bytes,
               "Greatest sum of segments, recorded and projected, bytes.")
          .Add("retries", &whatif::ProjectedPart::retries,
               "Projected requests for which the cache went back to the device.")
          .Add("ooms", &whatif::ProjectedPart::ooms,
               "1 where a projected request fails, or one after them by the growth a step; else 0.")
          .Add("failed_after", &whatif::ProjectedPart::failed_after,
               "Requests after the one that ended the recorded run; 1: the next; 0: none fails.")
          .Add("failed_steps_later", &whatif::ProjectedPart::failed_steps_later,
               "Whole steps after it; 0: in the step that was cut off, or none fails.")
          .Add("needed_bytes", &whatif::ProjectedPart::needed_bytes,
               "What is allocated then, and the request, bytes; 0: none fails.")
          .Add("available_bytes", &whatif::ProjectedPart::available_bytes, "What the allocator can have, bytes.")
          .Add("growth_bytes_per_step", &whatif::ProjectedPart::growth_bytes_per_step,
               "By which a step leaves more behind than it found, bytes.")
          .Add("is_extrapolated", &whatif::ProjectedPart::is_extrapolated,
               "Whether the failure lies beyond what was replayed, and is told by that growth."));
  return *fields;
}

template <>
const Fields<replay::Fidelity>& FieldsOf<replay::Fidelity>() {
  using replay::Fidelity;
  static const auto* fields = new Fields<Fidelity>(
      Fields<Fidelity>("fidelity")
          .Add("matched", &Fidelity::matched,
               "Allocations that landed at the recorded address, and recorded failures that failed again.")
          .Add("total", &Fidelity::total, "Recorded allocations, failed ones included.")
          .Add("segments_matched", &Fidelity::segments_matched, "Segments obtained and returned as recorded.")
          .Add("segments_total", &Fidelity::segments_total, "Segments obtained and returned in the record.")
          .Add("final_state_matches", &Fidelity::final_state_matches,
               "Whether the final segments and blocks are equal.")
          .Add("segment_addresses_used", &Fidelity::segment_addresses_used,
               "Addresses of new segments taken from the record.")
          .Add("tails_inferred", &Fidelity::tails_inferred, "Unsplit rests of older blocks told by later addresses."));
  return *fields;
}

template <>
const Fields<whatif::Risk>& FieldsOf<whatif::Risk>() {
  static const auto* fields = new Fields<whatif::Risk>(
      Fields<whatif::Risk>("risk")
          .Add("name", &whatif::Risk::name, "Stable key, see ashlar guide sweep.")
          .AddWord(
              "level", [](const auto& risk) { return whatif::RiskLevelName(risk.level); }, RiskLevels(),
              "A note does not count in the ranking; what is not recommended is never advised.")
          .Add("sentence", &whatif::Risk::sentence, "What goes wrong.")
          .Add("source", &whatif::Risk::source, "Where that is from."));
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
