#include "analyzer/report/program_text.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "analyzer/report/printable.h"

namespace ashlar::report {
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
    absl::StrAppend(&out,
                    "  by sizes alone, as this trace has no stacks: what repeats may be the layers of one pass\n");
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
