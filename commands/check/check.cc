#include "commands/check/check.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/state/live_stacks.h"
#include "analyzer/analyses/steps/steps.h"
#include "commands/shared/fields.h"
#include "commands/shared/layout.h"
#include "commands/shared/markdown.h"

namespace ashlar::answers {
namespace {

constexpr std::size_t kLeastSteps = 2;
constexpr char kNoCapacity[] =
    "a request trace does not say how much memory the device has: give --capacity, such as 16GiB";

// Exactly measured.
void Decide(bool holds, double measured, std::string reason, CheckRow& row) {
  row.measured = measured;
  row.verdict = holds ? CheckVerdict::kHolds : CheckVerdict::kBroken;
  if (!holds) row.reason = std::move(reason);
}

CheckRow CheckReserved(const TracedRun& run, std::uint64_t limit, const char* name = "max-reserved") {
  CheckRow row{name, CheckUnit::kBytes, static_cast<double>(limit)};
  const timeline::Peak& peak = run.timeline.reserved_peak();
  if (!run.has_events && peak.bytes <= limit) {
    row.reason = absl::StrCat("not in this trace: ", kOneState);
    return row;
  }
  const std::string when = peak.event == timeline::kBeforeWindow
                               ? "the start of the recorded window"
                               : absl::StrCat("event ", FormatCount(static_cast<std::uint64_t>(peak.event)));
  Decide(peak.bytes <= limit, static_cast<double>(peak.bytes),
         absl::StrCat("over by ", FormatBytes(peak.bytes - std::min(peak.bytes, limit)), " at ", when), row);
  return row;
}

CheckRow CheckGrowthOf(const TracedRun& run, const CheckGrowth& growth) {
  const std::optional<std::uint64_t> limit = growth.LimitOf(run.device);
  if (limit.has_value()) return CheckReserved(run, *limit, "max-growth");
  CheckRow row{"max-growth", CheckUnit::kBytes, 0};
  row.reason = "not in this trace: the baseline tells no peak of this device";
  return row;
}

CheckRow CheckUtilisation(const TracedRun& run, double limit) {
  CheckRow row{"min-utilisation", CheckUnit::kShare, limit};
  const std::uint64_t allocated = run.timeline.allocated_peak().bytes;
  const std::uint64_t reserved = run.timeline.reserved_peak().bytes;
  if (!run.has_events || reserved == 0) {
    row.reason = absl::StrCat("not in this trace: ", run.has_events ? "nothing was ever reserved" : kOneState);
    return row;
  }
  const double measured = static_cast<double>(allocated) / static_cast<double>(reserved);
  Decide(measured >= limit, measured,
         absl::StrCat("peak allocated ", FormatBytes(allocated), " of peak reserved ", FormatBytes(reserved)), row);
  return row;
}

CheckRow CheckRetries(const TracedRun& run, std::uint64_t limit) {
  CheckRow row{"max-retries", CheckUnit::kCount, static_cast<double>(limit)};
  if (!run.retries.has_value()) {
    row.reason = absl::StrCat("not in this trace: ", run.can_fail ? kOneState : kNoCapacity);
    return row;
  }
  const auto [least, most] = *run.retries;
  if (least <= limit && limit < most) {
    row.reason = absl::StrCat("not in this trace: between ", FormatCount(least), " and ", FormatCount(most),
                              "; whether segments were returned by a retry or by empty_cache is not recorded");
    return row;
  }
  Decide(most <= limit, static_cast<double>(most <= limit ? most : least),
         absl::StrCat(least == most ? "" : "at least ", FormatCount(least), " retries"), row);
  return row;
}

CheckRow CheckLeak(const TracedRun& run, std::uint64_t limit) {
  CheckRow row{"max-leak-per-step", CheckUnit::kBytes, static_cast<double>(limit)};
  const analyses::Steps steps = analyses::FindSteps(run.timeline, &run.stacks, run.annotations);
  if (steps.steps.size() < kLeastSteps) {
    row.reason = absl::StrCat("not in this trace: ", steps.steps.size(),
                              " whole steps were found, which is too few to tell a leak");
    return row;
  }
  std::uint64_t leaked = 0;
  for (const analyses::Leak& leak : steps.leaks) leaked += leak.bytes_per_step;
  std::string reason;
  if (!steps.leaks.empty()) {
    const analyses::Leak& most = steps.leaks.front();
    reason = absl::StrCat("over ", FormatCount(steps.steps.size()), " steps; most, ", FormatBytes(most.bytes_per_step),
                          ", by ", analyses::StackLabel(run.stacks, most.stack));
  }
  Decide(leaked <= limit, static_cast<double>(leaked), std::move(reason), row);
  return row;
}

CheckRow CheckOoms(const TracedRun& run, std::uint64_t limit) {
  CheckRow row{"max-ooms", CheckUnit::kCount, static_cast<double>(limit)};
  if (!run.has_events || !run.can_fail) {
    row.reason = absl::StrCat("not in this trace: ", run.can_fail ? kOneState : kNoCapacity);
    return row;
  }
  const auto ooms = run.timeline.oom_events();
  Decide(ooms.size() <= limit, static_cast<double>(ooms.size()),
         ooms.empty() ? "" : absl::StrCat("the last at event ", FormatCount(static_cast<std::uint64_t>(ooms.back()))),
         row);
  return row;
}

}  // namespace

std::optional<std::uint64_t> CheckGrowth::LimitOf(std::optional<int> device) const {
  for (const auto& [known, peak] : peaks) {
    const bool is_of_no_device = peaks.size() == 1 && (!known.has_value() || !device.has_value());  // a request trace
    if (known != device && !is_of_no_device) continue;
    return peak + (share ? static_cast<std::uint64_t>(*share * static_cast<double>(peak)) : bytes);
  }
  return std::nullopt;
}

std::uint64_t CheckAnswer::CountOf(CheckVerdict verdict) const {
  return static_cast<std::uint64_t>(
      std::count_if(rows.begin(), rows.end(), [verdict](const CheckRow& row) { return row.verdict == verdict; }));
}

CheckAnswer CheckTrace(std::string input, const TracedRun& run, const CheckLimits& limits) {
  CheckAnswer out{std::move(input), run.source, {}};
  if (limits.max_reserved_bytes) out.rows.push_back(CheckReserved(run, *limits.max_reserved_bytes));
  if (limits.min_utilisation) out.rows.push_back(CheckUtilisation(run, *limits.min_utilisation));
  if (limits.max_retries) out.rows.push_back(CheckRetries(run, *limits.max_retries));
  if (limits.max_leak_bytes_per_step) out.rows.push_back(CheckLeak(run, *limits.max_leak_bytes_per_step));
  if (limits.max_ooms) out.rows.push_back(CheckOoms(run, *limits.max_ooms));
  if (limits.max_growth) out.rows.push_back(CheckGrowthOf(run, *limits.max_growth));
  return out;
}

CheckAnswer CheckDevices(std::string input, const std::vector<TracedRun>& runs, const CheckLimits& limits) {
  CheckAnswer out{std::move(input), "", {}};
  for (const TracedRun& run : runs) {
    CheckAnswer one = CheckTrace("", run, limits);
    absl::StrAppend(&out.source, out.source.empty() ? "" : "; ", one.source);
    for (CheckRow& row : one.rows) {
      if (runs.size() > 1) row.device = run.device;
      out.rows.push_back(std::move(row));
    }
  }
  return out;
}

}  // namespace ashlar::answers

namespace ashlar::report {
namespace {

constexpr std::size_t kReasonWidth = 100;

// A limit as given may be as large as 64 bits hold.
std::uint64_t Whole(double value) { return value >= 0x1p63 ? UINT64_MAX : static_cast<std::uint64_t>(value); }

std::string FigureText(answers::CheckUnit unit, double value) {
  if (unit == answers::CheckUnit::kShare) return absl::StrFormat("%.2f %%", value * 100);
  return unit == answers::CheckUnit::kBytes ? FormatBytes(Whole(value)) : FormatCount(Whole(value));
}

std::variant<std::uint64_t, double> Number(answers::CheckUnit unit, double value) {
  if (unit == answers::CheckUnit::kShare) return value;
  return Whole(value);
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

// "every limit holds (2)", "of 2: 1 broken, 0 not in this trace".
std::string Tally(const answers::CheckAnswer& report) {
  if (report.Passed()) return absl::StrFormat("every limit holds (%d)", report.rows.size());
  return absl::StrFormat("of %d: %d broken, %d not in this trace", report.rows.size(),
                         report.CountOf(answers::CheckVerdict::kBroken),
                         report.CountOf(answers::CheckVerdict::kNotInTrace));
}

// For text and attributes alike. XML 1.0 has no way to write most control characters.
std::string Escaped(const std::string& text) {
  return absl::StrReplaceAll(Printable(text),
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&apos;"}});
}

}  // namespace

std::string ToText(const answers::CheckAnswer& report) {
  std::string out = absl::StrCat(report.Passed() ? "PASSED" : "FAILED", "  ", Tally(report), "\n");
  if (!report.Passed() && report.input != "-") {
    absl::StrAppend(&out, "NEXT    ashlar explain ", Printable(report.input), "\n");
  }
  absl::StrAppend(&out, "CHECK   ", Printable(report.source), "\n");
  std::vector<RowTexts> forms(2);  // on a narrow terminal without the reasons
  for (const answers::CheckRow& row : report.rows) {
    const char* verdict = row.verdict == answers::CheckVerdict::kHolds ? "holds" : "BROKEN";
    const std::string measured = row.measured.has_value() ? FigureText(row.unit, *row.measured) : "-";
    const std::string name = absl::StrFormat("  %s%-18s", OfDevice(row), row.name);
    const std::string said = row.verdict == answers::CheckVerdict::kNotInTrace ? row.reason : verdict;
    const std::string reason = row.verdict == answers::CheckVerdict::kBroken && !row.reason.empty()
                                   ? absl::StrCat(": ", Shortened(Printable(row.reason), kReasonWidth))
                                   : "";
    const std::string limit = FigureText(row.unit, row.limit);
    forms[0].push_back(absl::StrFormat("%s limit %11s  measured %11s  %s%s", name, limit, measured, said, reason));
    forms[1].push_back(absl::StrFormat("%s %11s of %11s  %s", name, measured, limit, said));
  }
  AppendRows(forms, out);
  return out;
}

std::string ToMarkdown(const answers::CheckAnswer& report) {
  std::vector<MarkdownCells> rows;
  for (const answers::CheckRow& row : report.rows) {
    rows.push_back({absl::StrCat(MarkdownText(OfDevice(row)), row.name), FigureText(row.unit, row.limit),
                    row.measured.has_value() ? FigureText(row.unit, *row.measured) : "",
                    row.verdict == answers::CheckVerdict::kBroken ? "**broken**"
                    : row.measured.has_value()                    ? "holds"
                                                                  : "not in this trace",
                    MarkdownText(row.reason)});
  }
  std::string out = absl::StrCat("### ", report.Passed() ? "Passed: " : "Failed: ", Tally(report), "\n");
  AppendMarkdownTable(MarkdownText(report.input), "", {"limit", "of", "measured", "", "why"},
                      {"---", "---:", "---:", "---", "---"}, rows, out);
  return out;
}

template <>
const Fields<answers::CheckRow>& FieldsOf<answers::CheckRow>() {
  using Row = answers::CheckRow;
  static const auto* fields = new Fields<Row>(
      Fields<Row>("limit")
          .Add("name", &Row::name, "The flag without its dashes.")
          .AddCount("device", &Row::device, "Whose; null where the trace has one device, or one was asked for.")
          .AddWord(
              "unit", [](const auto& row) { return UnitName(row.unit); },
              WordsUpTo(answers::CheckUnit::kCount, &UnitName), "Of limit and measured.")
          .Add(
              "limit", [](const auto& row) { return Number(row.unit, row.limit); }, "As given.")
          .AtLeast(0)
          .Add(
              "measured",
              [](const auto& row) {
                return row.measured.has_value() ? std::optional(Number(row.unit, *row.measured)) : std::nullopt;
              },
              "What the trace shows; null where it does not tell.")
          .AtLeast(0)
          .AddWord(
              "verdict", [](const auto& row) { return VerdictName(row.verdict); },
              WordsUpTo(answers::CheckVerdict::kNotInTrace, &VerdictName),
              "A limit that the trace cannot answer does not pass.")
          .AddNonEmpty("reason", &Row::reason, "Why it does not hold; null where it does."));
  return *fields;
}

template <>
const Fields<answers::CheckAnswer>& FieldsOf<answers::CheckAnswer>() {
  using Answer = answers::CheckAnswer;
  static const auto* fields =
      new Fields<Answer>(Fields<Answer>("check")
                             .Add("input", &Answer::input, "The name as given.")
                             .Add("source", &Answer::source, "What was read.")
                             .Add(
                                 "passed", [](const auto& of) { return of.Passed(); },
                                 "Whether every limit holds; the exit code is 0 then, 1 where one is "
                                 "broken, else 4.")
                             .Add("limits", &Answer::rows, "One a limit given, and device.")
                             .AtLeast(1));
  return *fields;
}

std::string ToJson(const answers::CheckAnswer& report) {
  return FieldsOf<answers::CheckAnswer>().ToJson(report).ToText();
}

std::string CheckSchema() {
  return SchemaTextOf<answers::CheckAnswer>("check",
                                            "Limits held against a trace. Null means that the trace does not tell.");
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
