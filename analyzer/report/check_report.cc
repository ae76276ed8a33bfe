#include "analyzer/report/check_report.h"

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "allocator/base/units.h"
#include "analyzer/report/json_values.h"
#include "analyzer/report/printable.h"

namespace ashlar::report {
namespace {

constexpr std::size_t kReasonWidth = 100;

// A limit as given may be as large as 64 bits hold.
std::uint64_t Whole(double value) { return value >= 0x1p63 ? UINT64_MAX : static_cast<std::uint64_t>(value); }

std::string FigureText(answers::CheckUnit unit, double value) {
  if (unit == answers::CheckUnit::kShare) return absl::StrFormat("%.2f %%", value * 100);
  return unit == answers::CheckUnit::kBytes ? FormatBytes(Whole(value)) : FormatCount(Whole(value));
}

Json Number(answers::CheckUnit unit, double value) {
  return unit == answers::CheckUnit::kShare ? Json(value) : Json(Whole(value));
}

const char* UnitName(answers::CheckUnit unit) {
  if (unit == answers::CheckUnit::kShare) return "share";
  return unit == answers::CheckUnit::kBytes ? "bytes" : "count";
}

const char* VerdictName(answers::CheckVerdict verdict) {
  if (verdict == answers::CheckVerdict::kHolds) return "holds";
  return verdict == answers::CheckVerdict::kBroken ? "broken" : "not_in_this_trace";
}

std::string MeasuredText(const answers::CheckRow& row) {
  return row.measured.has_value() ? absl::StrCat("measured ", FigureText(row.unit, *row.measured)) : "";
}

std::string OfDevice(const answers::CheckRow& row) {
  return row.device.has_value() ? absl::StrCat("device ", *row.device, ": ") : "";
}

// What was measured and why that does not do.
std::string Complaint(const answers::CheckRow& row) {
  if (!row.measured.has_value()) return row.reason;
  return absl::StrCat(MeasuredText(row), row.reason.empty() ? "" : ": ", row.reason);
}

// For text and attributes alike. XML 1.0 has no way to write most control characters.
std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(Printable(text),
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&apos;"}});
}

}  // namespace

std::string ToText(const answers::CheckAnswer& report) {
  std::string out = absl::StrCat("CHECK  ", Printable(report.source), "\n");
  for (const answers::CheckRow& row : report.rows) {
    const char* verdict = row.verdict == answers::CheckVerdict::kHolds ? "holds" : "BROKEN";
    const std::string measured = row.measured.has_value() ? FigureText(row.unit, *row.measured) : "-";
    out += absl::StrFormat("  %s%-18s limit %11s  measured %11s  %s", OfDevice(row), row.name,
                           FigureText(row.unit, row.limit), measured,
                           row.verdict == answers::CheckVerdict::kNotInTrace ? row.reason : verdict);
    if (row.verdict == answers::CheckVerdict::kBroken && !row.reason.empty())
      absl::StrAppend(&out, ": ", Shortened(Printable(row.reason), kReasonWidth));
    out += "\n";
  }
  if (report.Passed()) return out + absl::StrFormat("PASSED  every limit holds (%d)\n", report.rows.size());
  return out + absl::StrFormat("FAILED  of %d: %d broken, %d not in this trace\n", report.rows.size(),
                               report.CountOf(answers::CheckVerdict::kBroken),
                               report.CountOf(answers::CheckVerdict::kNotInTrace));
}

std::string ToJson(const answers::CheckAnswer& report) {
  Json out = {{"input", report.input}, {"source", report.source}, {"passed", report.Passed()}};
  out["limits"] = Json::Array();
  for (const answers::CheckRow& row : report.rows) {
    out["limits"].Append({{"name", row.name},
                          {"device", row.device.has_value() ? Json(*row.device) : Json(nullptr)},
                          {"unit", UnitName(row.unit)},
                          {"limit", Number(row.unit, row.limit)},
                          {"measured", row.measured ? Number(row.unit, *row.measured) : Json(nullptr)},
                          {"verdict", VerdictName(row.verdict)},
                          {"reason", row.reason.empty() ? Json(nullptr) : Json(row.reason)}});
  }
  return out.ToText();
}

std::string ToJUnit(const answers::CheckAnswer& report) {
  const std::uint64_t failures = report.rows.size() - report.CountOf(answers::CheckVerdict::kHolds);
  const std::string counts =
      absl::StrCat("tests=\"", report.rows.size(), "\" failures=\"", failures, "\" errors=\"0\"");
  std::string out = absl::StrCat("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites ", counts,
                                 ">\n  <testsuite name=\"ashlar check ", Escaped(report.input), "\" ", counts, ">\n");
  for (const answers::CheckRow& row : report.rows) {
    absl::StrAppend(&out, "    <testcase classname=\"ashlar.check\" name=\"", OfDevice(row), row.name, " ",
                    Escaped(FigureText(row.unit, row.limit)), "\"");
    if (row.verdict == answers::CheckVerdict::kHolds) {
      out += "/>\n";
      continue;
    }
    absl::StrAppend(&out, ">\n      <failure type=\"", VerdictName(row.verdict), "\" message=\"",
                    Escaped(Complaint(row)), "\"/>\n    </testcase>\n");
  }
  return out + "  </testsuite>\n</testsuites>\n";
}

}  // namespace ashlar::report
