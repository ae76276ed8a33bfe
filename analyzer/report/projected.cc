#include "analyzer/report/projected.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"

namespace ashlar::report {
namespace {

std::string CountOf(std::uint64_t count, const char* what) {
  return absl::StrCat(FormatCount(count), " ", what, count == 1 ? "" : "s");
}

}  // namespace

std::string ProjectedText(const remedies::WhatIfRow& row) {
  if (!row.gets_past.value_or(row.is_cut_off && row.ooms == 0)) return "";
  if (!row.projected.has_value()) return "gets past; nothing is known beyond";
  const remedies::ProjectedPart& next = *row.projected;
  if (next.ooms == 0) {
    return absl::StrCat("gets past; ", CountOf(next.requests, "request"), " more fit, peak ",
                        FormatBytes(next.peak_reserved_bytes));
  }
  if (next.failed_steps_later == 0) {
    return absl::StrCat("gets past; fails ", CountOf(next.failed_after, "request"), " on: needs ",
                        FormatBytes(next.needed_bytes));
  }
  const std::string steps = absl::StrCat("gets past; fails ", CountOf(next.failed_steps_later, "step"), " on: ");
  if (next.growth_bytes_per_step == 0) return absl::StrCat(steps, "needs ", FormatBytes(next.needed_bytes));
  return absl::StrCat(steps, "+", FormatBytes(next.growth_bytes_per_step), " a step");
}

Json ProjectedJson(const std::optional<remedies::ProjectedPart>& projected) {
  if (!projected.has_value()) return nullptr;
  return {{"requests", projected->requests},
          {"steps", projected->steps},
          {"peak_reserved_bytes", projected->peak_reserved_bytes},
          {"retries", projected->retries},
          {"ooms", projected->ooms},
          {"failed_after", projected->failed_after},
          {"failed_steps_later", projected->failed_steps_later},
          {"needed_bytes", projected->needed_bytes},
          {"available_bytes", projected->available_bytes},
          {"growth_bytes_per_step", projected->growth_bytes_per_step},
          {"is_extrapolated", projected->is_extrapolated}};
}

}  // namespace ashlar::report
