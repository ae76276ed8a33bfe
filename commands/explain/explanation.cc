#include "commands/explain/explanation.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/state/live_stacks.h"

namespace ashlar::answers {
namespace {

constexpr std::size_t kMostPinLines = 4;
constexpr std::size_t kMostReleaseLines = 3;

bool HasStacks(const trace::StackTable* stacks) { return stacks != nullptr && stacks->stack_count() > 0; }

std::string LabelOf(const trace::StackTable* stacks, trace::StackId stack) {
  return HasStacks(stacks) ? analyses::StackLabel(*stacks, stack) : "stacks are not in this trace";
}

void AddPin(const PinLine& pin, PinLine& line) {
  const bool is_first = line.blocks == 0;
  line.label = pin.label;
  line.blame_bytes += pin.blame_bytes;
  line.size_bytes += pin.size_bytes;
  line.blocks += pin.blocks;
  if (is_first || !pin.oldest_event.has_value()) {
    line.oldest_event = pin.oldest_event;
  } else if (line.oldest_event.has_value()) {
    line.oldest_event = std::min(*line.oldest_event, *pin.oldest_event);
  }
}

std::optional<timeline::EventIndex> InWindow(timeline::EventIndex event) {
  return event == timeline::kBeforeWindow ? std::nullopt : std::optional(event);
}

std::vector<PinLine> LinesOfCode(const analyses::PinBlame& pins, const trace::StackTable& stacks) {
  std::map<std::string, PinLine> by_label;
  for (const analyses::PinGroup& group : pins.groups) {
    const std::string label = analyses::StackLabel(stacks, group.stack);
    AddPin({label, group.blame_bytes, group.size_bytes, group.blocks, InWindow(group.oldest_event)}, by_label[label]);
  }
  std::vector<PinLine> out;
  for (auto& [label, line] : by_label) out.push_back(std::move(line));
  std::stable_sort(out.begin(), out.end(),
                   [](const PinLine& a, const PinLine& b) { return a.blame_bytes > b.blame_bytes; });
  return out;
}

std::vector<PinLine> LinesOfBlocks(const analyses::PinBlame& pins) {
  std::vector<PinLine> out;
  for (const analyses::Pin& pin : pins.pins) {
    out.push_back(
        {absl::StrCat("at 0x", absl::Hex(pin.address)), pin.blame_bytes, pin.size_bytes, 1, InWindow(pin.alloc_event)});
  }
  return out;
}

}  // namespace

FailureLines DescribeFailure(analyses::FailedRequest request, const timeline::Timeline& timeline,
                             const trace::StackTable* stacks) {
  FailureLines out{std::move(request)};
  if (!out.request.release.has_value()) return out;
  std::map<std::string, analyses::LabelledStack> by_label;
  for (const std::size_t index : out.request.release->blocks) {
    const timeline::BlockSpan& block = timeline.blocks()[index];
    const std::string label = LabelOf(stacks, block.stack);
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

PinLines DescribePins(const analyses::PinBlame& pins, const analyses::Steps& steps, const trace::StackTable* stacks) {
  PinLines out;
  out.lines = HasStacks(stacks) ? LinesOfCode(pins, *stacks) : LinesOfBlocks(pins);
  for (std::size_t i = kMostPinLines; i < out.lines.size(); ++i) {
    out.other_blame_bytes += out.lines[i].blame_bytes;
    out.other_blocks += out.lines[i].blocks;
  }
  if (out.lines.size() > kMostPinLines) out.lines.resize(kMostPinLines);
  for (PinLine& line : out.lines) {
    if (line.oldest_event.has_value()) line.phase = analyses::PhaseOf(steps, *line.oldest_event);
  }
  return out;
}

ProgramView ViewProgram(analyses::Steps steps, timeline::EventIndex moment, const trace::StackTable* stacks) {
  ProgramView out;
  out.moment = analyses::PhaseOf(steps, moment);
  std::map<std::string, LeakLine> lines;
  for (const analyses::Leak& leak : steps.leaks) {
    const std::string label = stacks == nullptr ? "no stack recorded" : analyses::StackLabel(*stacks, leak.stack);
    LeakLine& line = lines[label];
    line.label = label;
    line.bytes_per_step += leak.bytes_per_step;
    line.blocks += leak.blocks;
    line.bytes += leak.bytes;
  }
  for (auto& [label, line] : lines) out.leaks.push_back(std::move(line));
  std::stable_sort(out.leaks.begin(), out.leaks.end(),
                   [](const LeakLine& a, const LeakLine& b) { return a.bytes_per_step > b.bytes_per_step; });
  out.steps = std::move(steps);
  return out;
}

void SetAccounting(const core::Accounting& state, Explanation& explanation) {
  OomAccounting& out = explanation.accounting;
  out.allocated_bytes = state.allocated_bytes;
  out.reserved_bytes = state.reserved_bytes;
  out.live_bytes = state.live_bytes;
  out.rounding_bytes = state.rounding_bytes;
  out.pending_bytes = state.pending_bytes;
  out.stranded_bytes = state.stranded_bytes;
  out.whole_free_bytes = state.whole_free_bytes;
  out.private_pool_bytes = state.private_pool_bytes;
  explanation.stranded_segments = state.stranded_segment_count;
  explanation.pinning_blocks = state.pinning_block_count;
}

}  // namespace ashlar::answers
