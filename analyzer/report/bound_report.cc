#include "analyzer/report/bound_report.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "analyzer/report/json_values.h"
#include "analyzer/report/printable.h"

namespace ashlar::report {
namespace {

constexpr double kWorthNaming = 0.005;  // of the gap

std::optional<double> Above(std::uint64_t height, std::uint64_t bound) {
  if (bound == 0) return std::nullopt;
  return (static_cast<double>(height) - static_cast<double>(bound)) / static_cast<double>(bound);
}

std::string AboveText(std::uint64_t height, std::uint64_t bound) {
  const std::optional<double> share = Above(height, bound);
  return share.has_value() ? absl::StrFormat("%.2f %% above the bound", *share * 100) : "nothing was alive";
}

std::string Size(const answers::BoundAnswer& report, std::uint64_t size) {
  return report.is_bytes ? FormatBytes(size) : FormatCount(size);
}

void AppendLine(const answers::BoundAnswer& report, const char* name, std::uint64_t size, const std::string& remark,
                std::string& out) {
  out += absl::StrFormat("  %-17s %14s   %s\n", name, Size(report, size), remark);
}

void AppendWhatIfs(const answers::BoundAnswer& report, std::string& out) {
  if (report.what_if.empty()) return;
  out += "\nWHAT COMES CLOSER   (each row replayed from an empty allocator in memory that does not run out)\n";
  const remedies::WhatIfRow* best = &report.what_if.front();
  for (const remedies::WhatIfRow& row : report.what_if) {
    if (row.peak_reserved_bytes < best->peak_reserved_bytes) best = &row;
    const std::optional<double> closed = answers::GapClosed(report, row);
    std::string remark = AboveText(row.peak_reserved_bytes, report.lower_bound);
    if (row.is_baseline) {
      remark += "   <- as recorded";
    } else if (closed.has_value() && *closed >= kWorthNaming) {
      remark += absl::StrFormat(", closes %.0f %% of the gap", *closed * 100);
    }
    out +=
        absl::StrFormat("  %-32s peak %12s   %s\n", row.conf.empty() ? "default" : Shortened(Printable(row.conf), 32),
                        FormatBytes(row.peak_reserved_bytes), remark);
  }
  const double closed = answers::GapClosed(report, *best).value_or(0);
  if (closed < kWorthNaming) {
    out += "  none of these settings comes closer\n";
    return;
  }
  out += absl::StrFormat("  %s closes %.0f %% of the gap: %s of %s\n",
                         best->conf.empty() ? "the default" : Shortened(Printable(best->conf), 60), closed * 100,
                         FormatBytes(report.what_if.front().peak_reserved_bytes - best->peak_reserved_bytes),
                         FormatBytes(report.what_if.front().peak_reserved_bytes - report.lower_bound));
}

}  // namespace

std::string ToText(const answers::BoundAnswer& report) {
  std::string out = absl::StrCat("BOUND  ", Shortened(Printable(report.source), 100), "\n");
  AppendLine(report, "lower bound", report.lower_bound, "the most that was needed at one time: nothing can be below",
             out);
  AppendLine(report, "offline packing", report.packing_height,
             absl::StrCat(report.IsOptimal() ? "equals the bound: no packing is lower"
                                             : AboveText(report.packing_height, report.lower_bound),
                          "; ", FormatCount(report.buffers), " offsets, checked"),
             out);
  if (report.given_height.has_value()) {
    AppendLine(report, "offsets given", *report.given_height,
               absl::StrCat(AboveText(*report.given_height, report.lower_bound), "; checked"), out);
  }
  if (report.reserved_bytes.has_value()) {
    AppendLine(report, "reserved", *report.reserved_bytes, AboveText(*report.reserved_bytes, report.lower_bound), out);
  }
  AppendWhatIfs(report, out);
  for (const trace::Note& note : report.notes) {
    absl::StrAppend(&out, "note: ", Printable(note.message),
                    note.count > 1 ? absl::StrCat(" (", FormatCount(note.count), ")") : "", "\n");
  }
  return out;
}

std::string ToJson(const answers::BoundAnswer& report) {
  Json out = {{"input", report.input},
              {"source", report.source},
              {"unit", report.is_bytes ? "bytes" : "units"},
              {"buffers", report.buffers},
              {"lower_bound", report.lower_bound},
              {"packing", report.packing_height},
              {"packing_is_optimal", report.IsOptimal()},
              {"packing_above_bound", OrNull(Above(report.packing_height, report.lower_bound))},
              {"search_steps", report.search_steps},
              {"given_packing", OrNull(report.given_height)},
              {"reserved", OrNull(report.reserved_bytes)},
              {"reserved_above_bound", Json(nullptr)}};
  if (report.reserved_bytes) out["reserved_above_bound"] = OrNull(Above(*report.reserved_bytes, report.lower_bound));
  out["what_if"] = Json::Array();
  for (const remedies::WhatIfRow& row : report.what_if) {
    out["what_if"].Append({{"conf", row.conf},
                           {"is_recorded_setting", row.is_baseline},
                           {"peak_reserved_bytes", row.peak_reserved_bytes},
                           {"above_bound", OrNull(Above(row.peak_reserved_bytes, report.lower_bound))},
                           {"gap_closed", OrNull(answers::GapClosed(report, row))}});
  }
  out["notes"] = Json::Array();
  for (const trace::Note& note : report.notes) {
    out["notes"].Append({{"name", note.name}, {"message", note.message}, {"count", note.count}});
  }
  return out.ToText();
}

}  // namespace ashlar::report
