#include "commands/explain/memory.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "allocator/core/accounting.h"
#include "analyzer/analyses/state/state_accounting.h"
#include "commands/explain/failure.h"
#include "commands/shared/traced_run.h"

namespace ashlar::answers {
namespace {

constexpr std::size_t kMostStacks = 5;
constexpr std::size_t kMostPinLines = 4;

std::string DescribeMoment(const timeline::Timeline& timeline, timeline::EventIndex moment) {
  if (timeline.event_count() == 0) return kMomentOfState;
  if (!timeline.oom_events().empty()) return absl::StrCat("the out-of-memory error, event ", FormatCount(moment));
  if (moment == timeline::kBeforeWindow) return "the peak of allocated memory, at the start of the recorded window";
  return absl::StrCat("the peak of allocated memory, event ", FormatCount(moment));
}

// Free on the device when a request failed, as the device said.
std::optional<std::uint64_t> FreeWhenFailed(const analyses::CauseHistory& history) {
  if (!HasFailure(history)) return std::nullopt;
  return history.timeline->events()[static_cast<std::size_t>(history.moment)].address;
}

// The parts of the allocator, and those of the device around it, as far as they are known or follow from the others.
OomAccounting AccountingOf(const core::Accounting& state, const KnownDevice& device,
                           std::optional<std::uint64_t> free_bytes) {
  OomAccounting out{.total_bytes = device.total_bytes,
                    .allocated_bytes = state.allocated_bytes,
                    .reserved_bytes = state.reserved_bytes,
                    .live_bytes = state.live_bytes,
                    .rounding_bytes = state.rounding_bytes,
                    .pending_bytes = state.pending_bytes,
                    .stranded_bytes = state.stranded_bytes,
                    .whole_free_bytes = state.whole_free_bytes,
                    .private_pool_bytes = state.private_pool_bytes,
                    .outside_bytes = device.outside_bytes,
                    .free_bytes = free_bytes};
  if (!out.total_bytes.has_value()) return out;
  if (*out.total_bytes < state.reserved_bytes + free_bytes.value_or(0)) {
    out.total_bytes.reset();
    return out;
  }
  const std::uint64_t rest = *out.total_bytes - state.reserved_bytes;
  if (free_bytes.has_value() && !out.outside_bytes.has_value()) out.outside_bytes = rest - *free_bytes;
  if (!free_bytes.has_value() && out.outside_bytes.has_value() && rest >= *out.outside_bytes) {
    out.free_bytes = rest - *out.outside_bytes;
  }
  return out;
}

LiveHolders HoldersOf(const timeline::State& state, const trace::StackTable* stacks) {
  if (stacks == nullptr || stacks->stack_count() == 0) return {.sizes = analyses::LiveSizes(state, kMostStacks)};
  return {.stacks = analyses::LiveLines(state, *stacks, kMostStacks)};
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

PinLines DescribePins(const analyses::CauseHistory& history, const core::Accounting& state) {
  PinLines out{.stranded_segments = state.stranded_segment_count, .pinning_blocks = state.pinning_block_count};
  out.lines = history.HasStacks() ? LinesOfCode(history.pins, *history.stacks) : LinesOfBlocks(history.pins);
  for (std::size_t i = kMostPinLines; i < out.lines.size(); ++i) {
    out.other_blame_bytes += out.lines[i].blame_bytes;
    out.other_blocks += out.lines[i].blocks;
  }
  if (out.lines.size() > kMostPinLines) out.lines.resize(kMostPinLines);
  for (PinLine& line : out.lines) {
    if (line.oldest_event.has_value()) line.phase = analyses::PhaseOf(history.steps, *line.oldest_event);
  }
  return out;
}

}  // namespace

PeakFigures PeaksOf(const timeline::Timeline& timeline) {
  const std::uint64_t allocated = timeline.allocated_peak().bytes;
  const std::uint64_t reserved = timeline.reserved_peak().bytes;
  PeakFigures out{allocated, timeline.active_peak().bytes, reserved, std::nullopt};
  if (reserved > 0) out.utilisation = static_cast<double>(allocated) / static_cast<double>(reserved);
  return out;
}

Memory MemoryAt(const analyses::CauseHistory& history, const KnownDevice& device) {
  const core::Accounting state = analyses::AccountState(history.state);
  Memory out;
  out.moment = DescribeMoment(*history.timeline, history.moment);
  out.accounting = AccountingOf(state, device, FreeWhenFailed(history));
  out.peak = PeaksOf(*history.timeline);
  out.holders = HoldersOf(history.state, history.stacks);
  out.pins = DescribePins(history, state);
  return out;
}

std::vector<trace::Note> NotesOnCapacity(const Memory& memory, const KnownDevice& device) {
  if (!device.total_bytes.has_value() || memory.accounting.total_bytes.has_value()) return {};
  return {{"capacity_too_small",
           absl::StrCat("the given capacity of ", FormatBytes(*device.total_bytes),
                        memory.accounting.free_bytes.has_value()
                            ? " is below what was reserved and free: another device's"
                            : " is below what was reserved: this accounting leaves it out, and the "
                              "replays below run in it"),
           1}};
}

}  // namespace ashlar::answers
