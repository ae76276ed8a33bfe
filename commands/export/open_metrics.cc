#include "commands/export/open_metrics.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "allocator/base/check.h"
#include "analyzer/formats/utf8.h"
#include "commands/export/exported_run.h"

namespace ashlar::exports {
namespace {

// The format has escapes for the line end, the quote and the backslash alone.
std::string Escaped(const std::string& value) {
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(value, '\n')) {
    lines.push_back(absl::StrReplaceAll(formats::ToPrintable(line), {{"\\", "\\\\"}, {"\"", "\\\""}}));
  }
  return absl::StrJoin(lines, "\\n");
}

std::string Ratio(double value) { return absl::StrFormat("%.9g", value); }

}  // namespace

OpenMetrics::OpenMetrics()
    : families_({
          {"ashlar_trace", "info", nullptr, "What was read, and what came of it."},
          {"ashlar_part_bytes", "gauge", "bytes", "Where the memory is at the moment explained."},
          {"ashlar_peak_bytes", "gauge", "bytes", "The greatest value in the trace."},
          {"ashlar_utilisation_ratio", "gauge", "ratio", "Peak allocated by peak reserved."},
          {"ashlar_request_bytes", "gauge", "bytes", "The request that failed last."},
          {"ashlar_growth_bytes", "gauge", "bytes", "What a step leaves behind."},
          {"ashlar_events", "counter", nullptr, "Events of the trace."},
          {"ashlar_failed_requests", "counter", nullptr, "Requests that ran out of memory."},
          {"ashlar_retries", "counter", nullptr, "Requests for which the cache was returned first."},
          {"ashlar_fidelity_ratio", "gauge", "ratio", "Allocations that the replay put at their recorded address."},
          {"ashlar_cause_bytes", "gauge", "bytes", "What a cause explains at the moment."},
          {"ashlar_what_if_peak_reserved_bytes", "gauge", "bytes", "Peak reserved under other settings."},
          {"ashlar_what_if_failed_requests", "gauge", nullptr, "Requests that fail under other settings."},
      }) {}

void OpenMetrics::Sample(absl::string_view family, const Labels& labels, const std::string& value) {
  const auto found =
      std::find_if(families_.begin(), families_.end(), [&](const Family& of) { return family == of.name; });
  ASHLAR_CHECK(found != families_.end());
  const bool is_counter = absl::string_view(found->type) == "counter";
  const bool is_info = absl::string_view(found->type) == "info";
  std::string line = absl::StrCat(family, is_counter ? "_total" : is_info ? "_info" : "", "{");
  const char* before = "";
  for (const auto& [name, text] : labels) {
    absl::StrAppend(&line, std::exchange(before, ","), name, "=\"", Escaped(text), "\"");
  }
  found->samples.push_back(absl::StrCat(line, "} ", value, "\n"));
}

void OpenMetrics::AddFigures(const ExportedRun& run, const std::string& device) {
  const answers::Explanation& explained = *run.explanation;
  const auto add_peak = [&](const char* of, const std::optional<std::uint64_t>& bytes) {
    if (bytes.has_value()) Sample("ashlar_peak_bytes", {{"device", device}, {"of", of}}, absl::StrCat(*bytes));
  };
  add_peak("allocated", explained.peak.allocated_bytes);
  add_peak("active", explained.peak.active_bytes);
  add_peak("reserved", explained.peak.reserved_bytes);
  if (explained.peak.utilisation.has_value()) {
    Sample("ashlar_utilisation_ratio", {{"device", device}}, Ratio(*explained.peak.utilisation));
  }
  if (explained.request_bytes.has_value()) {
    Sample("ashlar_request_bytes", {{"device", device}}, absl::StrCat(*explained.request_bytes));
  }
  if (explained.growing.has_value()) {
    Sample("ashlar_growth_bytes", {{"device", device}}, absl::StrCat(explained.growing->bytes_per_step));
  }
  if (explained.fidelity.has_value() && explained.fidelity->total > 0) {
    Sample("ashlar_fidelity_ratio", {{"device", device}},
           Ratio(static_cast<double>(explained.fidelity->matched) / static_cast<double>(explained.fidelity->total)));
  }
  for (const auto& [part, bytes] : AccountingParts(explained.accounting)) {
    if (bytes.has_value()) Sample("ashlar_part_bytes", {{"device", device}, {"part", part}}, absl::StrCat(*bytes));
  }
}

void OpenMetrics::AddCauses(const ExportedRun& run, const std::string& device) {
  for (const answers::ExplainedCause& cause : run.explanation->causes) {
    if (cause.finding.finding != analyses::Finding::kFound) continue;
    Sample("ashlar_cause_bytes",
           {{"device", device},
            {"cause", std::string(analyses::CauseName(cause.finding.kind))},
            {"confidence", std::string(analyses::ConfidenceName(cause.finding.confidence))}},
           absl::StrCat(cause.finding.bytes));
  }
}

void OpenMetrics::AddWhatIfs(const ExportedRun& run, const std::string& device) {
  for (const whatif::WhatIfRow& row : run.explanation->what_if) {
    const Labels labels = {{"device", device}, {"conf", row.conf}, {"baseline", row.is_baseline ? "true" : "false"}};
    Sample("ashlar_what_if_peak_reserved_bytes", labels, absl::StrCat(row.peak_reserved_bytes));
    Sample("ashlar_what_if_failed_requests", labels, absl::StrCat(row.ooms));
  }
}

void OpenMetrics::Add(const ExportedRun& run) {
  ASHLAR_CHECK(run.explanation.has_value());
  const std::string device = absl::StrCat(run.device());
  Sample("ashlar_trace",
         {{"device", device},
          {"source", run.explanation->source},
          {"verdict", std::string(analyses::VerdictName(run.explanation->verdict))},
          {"moment", run.explanation->moment}},
         "1");
  AddFigures(run, device);
  Sample("ashlar_events", {{"device", device}}, absl::StrCat(run.traced.timeline.event_count()));
  Sample("ashlar_failed_requests", {{"device", device}}, absl::StrCat(run.traced.timeline.oom_events().size()));
  const std::optional<answers::CountSpan>& retries = run.traced.retries;
  if (retries.has_value() && retries->least == retries->most) {
    Sample("ashlar_retries", {{"device", device}}, absl::StrCat(retries->least));
  }
  AddCauses(run, device);
  AddWhatIfs(run, device);
}

void OpenMetrics::Write(ByteSink& out) const {
  for (const Family& family : families_) {
    if (family.samples.empty()) continue;
    out.Append(absl::StrCat("# TYPE ", family.name, " ", family.type, "\n"));
    if (family.unit != nullptr) out.Append(absl::StrCat("# UNIT ", family.name, " ", family.unit, "\n"));
    out.Append(absl::StrCat("# HELP ", family.name, " ", family.help, "\n"));
    for (const std::string& sample : family.samples) out.Append(sample);
  }
  out.Append("# EOF\n");
}

}  // namespace ashlar::exports
