#include "commands/convert/snapshot_cut.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace ashlar::answers {
namespace {

using trace::Action;

// Whether a stack has the text in one of its frames; each stack is looked at once.
class StackFilter {
 public:
  StackFilter(const trace::StackTable& stacks, const std::string& text) : stacks_(stacks), text_(text) {}

  bool Has(trace::StackId id) {
    if (text_.empty()) return true;
    const auto [known, is_new] = known_.try_emplace(id, false);
    if (is_new) known->second = Search(id);
    has_found_ |= known->second;
    return known->second;
  }
  bool has_found() const { return has_found_; }

 private:
  bool Search(trace::StackId id) const {
    for (const trace::FrameId frame_id : stacks_.stack(id)) {
      const trace::Frame& frame = stacks_.frame(frame_id);
      if (absl::StrContains(absl::StrCat(frame.file, ":", frame.line, " ", frame.function), text_)) return true;
    }
    return false;
  }

  const trace::StackTable& stacks_;
  const std::string& text_;
  absl::flat_hash_map<trace::StackId, bool> known_;
  bool has_found_ = false;
};

class DeviceCutter {
 public:
  DeviceCutter(const trace::Snapshot& snapshot, const CutRule& rule)
      : snapshot_(snapshot), rule_(rule), filter_(snapshot.stacks, rule.stack_text) {}

  // The events that stay. Afterwards `kept_` has what became of the blocks that the events made.
  std::vector<trace::Event> Events(int device) {
    std::vector<trace::Event> out;
    for (const trace::Event& event : snapshot_.device_traces[static_cast<std::size_t>(device)]) {
      if (Stays(event)) out.push_back(event);
    }
    return out;
  }

  bool has_found_text() const { return filter_.has_found(); }

  // Before the next device, whose addresses may be the same.
  void Forget() { kept_.clear(); }

  bool StaysInUse(const trace::SnapshotBlock& block) {
    const auto known = kept_.find(block.address);
    if (known != kept_.end()) return known->second;
    return IsWanted(block.requested_bytes.value_or(block.size_bytes), block.stack);
  }

 private:
  bool IsWanted(std::uint64_t bytes, trace::StackId stack) { return bytes >= rule_.least_bytes && filter_.Has(stack); }

  bool Stays(const trace::Event& event) {
    const bool ends = event.action == Action::kFreeCompleted;
    switch (event.action) {
      case Action::kAlloc:
        return kept_[event.address] = IsWanted(event.size_bytes, event.stack);
      case Action::kFreeRequested:
      case Action::kFreeCompleted:
      case Action::kAnnotate: {
        const auto known = kept_.find(event.address);
        // Of a block older than the trace the stack of its allocation is not known: the text is not in it.
        const bool stays = known != kept_.end()                ? known->second
                           : event.action == Action::kAnnotate ? rule_.KeepsAllBlocks()
                                                               : IsWanted(event.size_bytes, trace::kNoStack);
        if (ends && known != kept_.end()) kept_.erase(known);
        return stays;
      }
      default:
        return true;
    }
  }

  const trace::Snapshot& snapshot_;
  const CutRule& rule_;
  StackFilter filter_;
  absl::flat_hash_map<std::uint64_t, bool> kept_;  // blocks in use that an event made, by address
};

// Free space is one block between two that are in use.
void AddFree(const trace::SnapshotBlock& block, std::vector<trace::SnapshotBlock>& out) {
  if (!out.empty() && out.back().state == trace::BlockState::kFree) {
    out.back().size_bytes += block.size_bytes;
    return;
  }
  out.emplace_back().address = block.address;
  out.back().size_bytes = block.size_bytes;
}

std::vector<trace::SnapshotBlock> BlocksOf(const trace::SnapshotSegment& segment, DeviceCutter& cutter,
                                           std::uint64_t& gone) {
  std::vector<trace::SnapshotBlock> out;
  for (const trace::SnapshotBlock& block : segment.blocks) {
    const bool is_free = block.state == trace::BlockState::kFree;
    const bool stays = !is_free && cutter.StaysInUse(block);
    gone += is_free || stays ? 0 : 1;
    if (stays) {
      out.push_back(block);
    } else {
      AddFree(block, out);
    }
  }
  return out;
}

int DeviceCountOf(const trace::Snapshot& snapshot) {
  int count = static_cast<int>(snapshot.device_traces.size());
  for (const trace::SnapshotSegment& segment : snapshot.segments) count = std::max(count, segment.device + 1);
  return count;
}

}  // namespace

SnapshotCut CutSnapshot(const trace::Snapshot& snapshot, const CutRule& rule) {
  SnapshotCut out{snapshot};
  out.snapshot.segments.clear();
  DeviceCutter cutter(snapshot, rule);
  for (int device = 0; device < DeviceCountOf(snapshot); ++device) {
    const bool is_wanted = rule.device.value_or(device) == device;
    const bool is_whole = is_wanted && rule.KeepsAllBlocks();
    const auto index = static_cast<std::size_t>(device);
    if (index < snapshot.device_traces.size() && !is_whole) {
      std::vector<trace::Event> events;
      if (is_wanted) events = cutter.Events(device);
      out.events_gone += snapshot.device_traces[index].size() - events.size();
      out.snapshot.device_traces[index] = std::move(events);
    }
    for (const trace::SnapshotSegment& segment : snapshot.segments) {
      if (segment.device != device || !is_wanted) continue;
      out.snapshot.segments.push_back(segment);
      if (!is_whole) out.snapshot.segments.back().blocks = BlocksOf(segment, cutter, out.blocks_gone);
    }
    cutter.Forget();
  }
  out.has_stack_text = cutter.has_found_text();
  return out;
}

}  // namespace ashlar::answers
