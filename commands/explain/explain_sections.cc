// The sections of an explanation's text about a failed request, about what pins segments, and about the program's
// steps.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "commands/explain/explain_report.h"
#include "commands/shared/layout.h"

namespace ashlar::report {

namespace {

constexpr std::size_t kPinColumns = 79;  // of a line of 130, what is left for a label and since when its blocks live
constexpr std::size_t kPhaseWidth = 20;
constexpr std::size_t kMostRemarkBeforeLabel = 70;  // a longer one has the line for itself
constexpr std::size_t kReleaseLabelWidth = 40;
constexpr std::size_t kRemarkColumns = 90;  // of a line of 130, what is left for a remark

void AppendRow(const char* name, std::uint64_t bytes, const std::string& remark, std::string& out) {
  const std::string row = absl::StrFormat("  %-24s %11s", name, FormatBytes(bytes));
  AppendRows({{absl::StrCat(row, "  ", remark)}}, out);
}

std::string Blocks(std::uint64_t count, const char* kind) {
  return absl::StrCat(FormatCount(count), " ", kind, count == 1 ? "block" : "blocks");
}

// Rungs that every reader should see, and those that had something to give.
bool IsWorthALine(const analyses::LadderRung& rung) {
  if (rung.name == "search again") return rung.would_serve;
  return rung.bytes > 0 || rung.name == "reuse a cached block" || rung.name == "obtain a new segment" ||
         rung.name == "release the whole cache";
}

void AppendElsewhere(const analyses::FailedRequest& failed, std::string& out) {
  if (failed.free_in_other_streams_bytes >= failed.request_bytes) {
    AppendRow("free for another stream", failed.free_in_other_streams_bytes,
              "one run, large enough: streams do not share", out);
  }
  if (failed.free_in_other_pools_bytes >= failed.request_bytes) {
    AppendRow("free in another pool", failed.free_in_other_pools_bytes, "one run, large enough: pools do not share",
              out);
  }
}

std::string ReleaseRemark(const analyses::ReleaseSet& release, const answers::FailureLines& failure) {
  std::string out = Blocks(release.blocks.size(), "live ");
  if (release.blocks.size() > 1) absl::StrAppend(&out, release.is_one_run ? " in a row" : " that hold whole segments");
  absl::StrAppend(&out, release.is_minimal ? ", proven the fewest bytes"
                                           : absl::StrCat(", the best found; less than ",
                                                          FormatBytes(release.lower_bound_bytes), " cannot do"));
  if (!failure.release.empty() && out.size() < kMostRemarkBeforeLabel) {
    const std::string more = failure.release.size() > 1 ? ", ..." : "";
    const std::size_t width = std::min(kReleaseLabelWidth, kRemarkColumns - out.size() - 2 - more.size());
    absl::StrAppend(&out, ": ", Shortened(Printable(failure.release.front().label), width), more);
  }
  return out;
}

void AppendRelease(const answers::FailureLines& failure, std::string& out) {
  const std::optional<analyses::ReleaseSet>& release = failure.request.release;
  if (!release.has_value()) {
    absl::StrAppend(&out, "  to make room             no set of live blocks is known to be enough\n");
  } else if (release->blocks.empty()) {
    absl::StrAppend(&out, "  to make room             nothing need be released: made again, it fits\n");
  } else {
    AppendRow("to make room, release", release->bytes, ReleaseRemark(*release, failure), out);
  }
}

std::string Since(const answers::PinLine& line) {
  if (!line.oldest_event.has_value()) return "alive since before the recording";
  std::string out = absl::StrCat("alive since event ", FormatCount(static_cast<std::uint64_t>(*line.oldest_event)));
  if (!line.phase.empty()) absl::StrAppend(&out, ", ", Shortened(Printable(line.phase), kPhaseWidth));
  return out;
}

}  // namespace

void AppendFailure(const std::optional<answers::FailureLines>& failure, std::string& out) {
  if (!failure.has_value()) return;
  const analyses::FailedRequest& failed = failure->request;
  absl::StrAppend(&out, "\nWHY IT FAILED   (", FormatBytes(failed.request_bytes), " on stream ", Handle(failed.stream),
                  ", ", failed.is_small_pool ? "small" : "large",
                  " pool; what each step of the allocator's search could give)\n");
  for (const analyses::LadderRung& rung : failed.rungs) {
    if (!IsWorthALine(rung)) continue;
    std::string remark = rung.remark;
    if (rung.name == "release the whole cache" && failed.returned_bytes > 0) {
      remark = absl::StrCat(FormatBytes(failed.returned_bytes), " went back to the device just before");
    }
    AppendRow(rung.name.c_str(), rung.bytes, remark, out);
  }
  AppendElsewhere(failed, out);
  AppendRelease(*failure, out);
}

void AppendPins(const answers::PinLines& pins, std::string& out) {
  if (pins.lines.empty()) return;
  absl::StrAppend(
      &out,
      "\nWHAT PINS THE SEGMENTS   (blocks in use beside free memory that cannot go back; smaller ones count more)\n");
  std::size_t longest = 0;
  std::size_t most = kReleaseLabelWidth;
  for (const answers::PinLine& line : pins.lines) {
    longest = std::max(longest, line.label.size());
    most = std::min(most, kPinColumns - 2 - Since(line).size());
  }
  const std::size_t width = std::min(longest, most);
  std::vector<RowTexts> forms(3);
  for (const answers::PinLine& line : pins.lines) {
    const std::string behind =
        absl::StrFormat("  %11s  behind %12s", FormatBytes(line.blame_bytes), Blocks(line.blocks, ""));
    const std::string label = absl::StrFormat("%-*s", static_cast<int>(width), Shortened(Printable(line.label), most));
    forms[0].push_back(
        absl::StrCat(behind, absl::StrFormat(" of %11s  ", FormatBytes(line.size_bytes)), label, "  ", Since(line)));
    forms[1].push_back(absl::StrCat(behind, "  ", label, "  ", Since(line)));
    forms[2].push_back(absl::StrCat(behind, "  ", MiddleCut(Printable(line.label), LabelRoom(36, most))));
  }
  AppendRows(forms, out);
  if (pins.other_blocks > 0) {
    out += absl::StrFormat("  %11s  behind %12s elsewhere\n", FormatBytes(pins.other_blame_bytes),
                           Blocks(pins.other_blocks, ""));
  }
}

namespace {

using analyses::EventRange;
using analyses::Steps;
using analyses::StepSource;

constexpr std::size_t kMostLeaks = 3;

std::string CountOf(std::size_t count) { return FormatCount(static_cast<std::uint64_t>(count)); }

bool IsOutside(const std::string& moment) {
  return absl::StartsWith(moment, "before ") || absl::StartsWith(moment, "after ");
}

std::string HowTold(const Steps& steps) {
  if (steps.source == StepSource::kAnnotations) return "told from the program's own marks";
  return absl::StrFormat("told from the period of the requests: %.1f %% of them repeat one step later",
                         steps.regularity * 100);
}

std::uint64_t MedianEvents(const std::vector<EventRange>& steps) {
  std::vector<std::uint64_t> lengths;
  for (const EventRange& step : steps) lengths.push_back(static_cast<std::uint64_t>(step.end - step.begin));
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>((lengths.size() - 1) / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  return *middle;
}

void AppendSteps(const answers::ProgramView& view, std::string& out) {
  const std::vector<EventRange>& steps = view.steps.steps;
  absl::StrAppend(&out, "\nSTEPS   (", HowTold(view.steps), ")\n");
  absl::StrAppend(&out, "  ", CountOf(steps.size()), " whole ", steps.size() == 1 ? "step" : "steps", " of about ",
                  FormatCount(MedianEvents(steps)), " events, from event ", FormatCount(steps.front().begin), " to ",
                  FormatCount(steps.back().end - 1), "\n");
  if (view.steps.told_from_sizes) {
    absl::StrAppend(&out, "  by sizes alone, not by lines: what repeats may be the layers of one pass\n");
  }
}

}  // namespace

absl::string_view StepSourceName(StepSource source) {
  switch (source) {
    case StepSource::kNone:
      return "none";
    case StepSource::kAnnotations:
      return "annotations";
    case StepSource::kPeriod:
      return "period";
  }
  return "";
}

void AppendProgram(const answers::ProgramView& view, std::string& out) {
  if (view.steps.source != StepSource::kNone) {
    AppendSteps(view, out);
  } else if (!view.moment.empty()) {
    absl::StrAppend(&out, "\nSTEPS   (none that repeats in this trace)\n");
  }
  if (!view.moment.empty())
    absl::StrAppend(&out, "  that moment lies ", IsOutside(view.moment) ? "" : "in ", Printable(view.moment), "\n");
  for (std::size_t i = 0; i < std::min(view.leaks.size(), kMostLeaks); ++i) {
    const answers::LeakLine& leak = view.leaks[i];
    out += absl::StrFormat("  each step leaves behind %11s  %s: %s in %s blocks by the last\n",
                           FormatBytes(leak.bytes_per_step), Printable(leak.label), FormatBytes(leak.bytes),
                           FormatCount(leak.blocks));
  }
  if (view.leaks.size() > kMostLeaks) {
    absl::StrAppend(&out, "  and ", CountOf(view.leaks.size() - kMostLeaks), " more lines leave something behind\n");
  }
}

}  // namespace ashlar::report
