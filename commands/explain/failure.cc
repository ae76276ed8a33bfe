#include "commands/explain/failure.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "allocator/policy/size_rule.h"
#include "analyzer/whatif/what_if_input.h"

namespace ashlar::answers {
namespace {

constexpr std::size_t kMostReleaseLines = 3;

FailureLines DescribeFailure(const analyses::CauseHistory& history) {
  FailureLines out{*history.failed};
  if (!out.request.release.has_value()) return out;
  std::map<std::string, analyses::LabelledStack> by_label;
  for (const std::size_t index : out.request.release->blocks) {
    const timeline::BlockSpan& block = history.timeline->blocks()[index];
    const std::string label = history.HasStacks() ? analyses::StackLabel(*history.stacks, block.stack)
                                                  : std::string("stacks are not in this trace");
    analyses::LabelledStack& line = by_label[label];
    line.label = label;
    line.bytes += block.size_bytes;
    ++line.blocks;
  }
  for (auto& [label, line] : by_label) out.release.push_back(std::move(line));
  std::stable_sort(out.release.begin(), out.release.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  if (out.release.size() > kMostReleaseLines) out.release.resize(kMostReleaseLines);
  return out;
}

// The least request that rounds to `rounded`.
std::uint64_t LeastRequest(std::uint64_t rounded, const policy::Options& options) {
  if (rounded > policy::kMaxRequestBytes) return rounded;  // no allocator made this
  std::uint64_t low = 1;
  std::uint64_t high = std::max<std::uint64_t>(rounded, 1);
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (policy::RoundedBytes(middle, options) >= rounded) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace

bool HasFailure(const analyses::CauseHistory& history) {
  return whatif::CapacityAtOom(*history.timeline, *history.options).has_value();
}

core::OomFigures FiguresOfFailure(const analyses::CauseHistory& history, const OomAccounting& accounting) {
  const trace::Event& event = history.timeline->events()[static_cast<std::size_t>(history.moment)];
  return {*accounting.reserved_bytes,
          accounting.live_bytes.value_or(*accounting.allocated_bytes),
          event.address,
          accounting.outside_bytes,
          event.size_bytes,
          policy::SegmentBytes(std::max<std::uint64_t>(event.size_bytes, 1), *history.options)};
}

Failure FailureAt(const analyses::CauseHistory& history, const OomAccounting& accounting) {
  if (!HasFailure(history)) return {};
  const core::OomFigures figures = FiguresOfFailure(history, accounting);
  const std::int64_t rounded = Signed(figures.request_bytes);
  const std::int64_t headroom = core::JudgeOom(figures).headroom_bytes;
  return {.tried_bytes = figures.segment_bytes,
          .request_interval = ByteSpan{Signed(LeastRequest(figures.request_bytes, *history.options)), rounded, rounded},
          .headroom = ByteSpan{headroom, headroom, headroom},
          .recorded = DescribeFailure(history)};
}

MessageFacts FactsOf(const formats::OomMessage& message) {
  MessageFacts out{message.family, message.device, message.truncated, message.told, {}};
  if (message.limit.has_value()) out.figures.push_back({"limit", *message.limit});
  out.figures.insert(out.figures.end(), message.details.begin(), message.details.end());
  for (const formats::ProcessUse& process : message.processes) {
    if (!process.used.has_value()) continue;
    const std::string name =
        process.is_this_process ? "this_process" : absl::StrCat("process_", process.pid.value_or(0));
    out.figures.push_back({name, *process.used});
    if (process.device.has_value() && process.pid.has_value()) out.processes_beside.push_back(*process.pid);
  }
  return out;
}

std::optional<RaisedAt> RaisedAtOf(const formats::OomMessage& message) {
  std::vector<trace::Frame> frames;
  for (const formats::TracebackLine& line : message.traceback) frames.push_back(line.frame);
  // A compiled library tells its sources by paths that look like the program's own.
  for (trace::Frame& frame : frames) {
    if (absl::EndsWith(frame.file, ".pyx")) frame.file = absl::StrCat("/site-packages/", frame.file);
  }
  const std::vector<std::size_t> own = analyses::NearestFrames(frames);
  if (own.empty()) return std::nullopt;
  const auto label = [&frames](std::size_t i) {
    return std::string(absl::StripTrailingAsciiWhitespace(analyses::FrameLabel(frames[i])));
  };
  RaisedAt out{label(own.back()), message.traceback[own.back()].code, {}};
  for (const std::size_t i : own) out.path.push_back(label(i));
  return out;
}

}  // namespace ashlar::answers
