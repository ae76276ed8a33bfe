#include "analyzer/timeline/placement.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "analyzer/timeline/column_values.h"
#include "analyzer/timeline/disagreement.h"
#include "analyzer/timeline/segment_step.h"

namespace ashlar::timeline {
namespace {

// What the pass remembers of a block that stands, by id; ids below undone.blocks.size() are blocks before the window,
// others are given anew when their block is gone.
struct Placed {
  EventIndex alloc_event = kBeforeWindow;
  std::uint64_t least_bytes = 0;     // its rounded request
  std::uint64_t max_tail_bytes = 0;  // how much more it may span
  bool is_size_open = false;         // later placements may change it
};

class PlacementPass {
 public:
  PlacementPass(absl::Span<const trace::Event> events, const BlockSizeRule& rule, UndoneTrace& undone)
      : events_(events), rule_(rule), undone_(undone), picture_(undone.picture) {}

  absl::StatusOr<PlacementCounts> Run() {
    SettleStart();
    for (std::size_t i = 0; i < events_.size(); ++i) {
      if (absl::Status status = Step(i); !status.ok()) {
        return Disagreement(undone_.device, static_cast<std::int64_t>(i), events_[i], status.message());
      }
    }
    for (const auto& [address, occupied] : undone_.picture.blocks()) {
      counts_.unknown_tails += undone_.blocks[occupied.id].size_is_minimum;
    }
    return counts_;
  }

 private:
  // Rests that show at once: too small to be a free block, or of a block that is never split.
  void SettleStart() {
    placed_.resize(undone_.blocks.size());
    for (const auto& [address, occupied] : undone_.picture.blocks()) {
      StateBlock& block = undone_.blocks[occupied.id];
      if (!block.size_is_minimum) continue;
      const std::uint64_t rest = picture_.GapEnd(address) - block.End();
      const std::uint64_t max_tail = MaxTailBytes(rule_, picture_.SegmentAround(address)->Kind(), block.size_bytes);
      placed_[occupied.id] = {.least_bytes = block.size_bytes, .max_tail_bytes = max_tail};
      if (rest <= max_tail) {
        SetStartSize(occupied.id, block.size_bytes + rest);
      } else if (max_tail < kMinBlockBytes) {
        block.size_is_minimum = false;
      } else {
        placed_[occupied.id].is_size_open = true;
      }
    }
  }

  void SetStartSize(std::uint32_t id, std::uint64_t size_bytes) {
    StateBlock& block = undone_.blocks[id];
    block.size_bytes = size_bytes;
    block.size_is_minimum = false;
    undone_.picture.ResizeBlock(block.address, size_bytes);
    picture_.ResizeBlock(block.address, size_bytes);
    placed_[id].is_size_open = false;
  }

  absl::Status Step(std::size_t index) {
    const trace::Event& event = events_[index];
    if (IsSegmentEvent(event.action)) return ApplySegmentEvent(event, undone_.facts.At(index, true), 0, picture_);
    if (event.action == trace::Action::kAlloc) return Place(index);
    if (event.action == trace::Action::kFreeCompleted) Remove(event.address);
    return absl::OkStatus();
  }

  void Remove(std::uint64_t address) {
    const std::uint32_t id = picture_.BlockAt(address)->id;
    if (id >= undone_.blocks.size()) free_ids_.push_back(id);
    picture_.RemoveBlock(address);
  }

  std::uint32_t NewId(const Placed& placed) {
    if (free_ids_.empty()) {
      placed_.push_back(placed);
      return static_cast<std::uint32_t>(placed_.size() - 1);
    }
    const std::uint32_t id = free_ids_.back();
    free_ids_.pop_back();
    placed_[id] = placed;
    return id;
  }

  absl::Status Place(std::size_t index) {
    const trace::Event& event = events_[index];
    const SegmentRange* segment = picture_.SegmentAround(event.address);
    if (segment == nullptr) return absl::FailedPreconditionError("expected a segment around it, found none");
    LookBelow(event.address, *segment);
    const std::uint64_t gap_bytes = picture_.GapEnd(event.address) - event.address;
    if (event.size_bytes > gap_bytes) {
      return absl::FailedPreconditionError(
          absl::StrCat("expected room for the request, found only ", gap_bytes, " B free there"));
    }
    const std::uint64_t wanted_bytes = rule_.rounded_bytes(event.size_bytes);
    const std::uint64_t rounded_bytes = std::min(wanted_bytes, gap_bytes);
    const std::uint64_t by_rule = BlockBytes(rule_, segment->Kind(), rounded_bytes, gap_bytes);
    std::uint64_t size_bytes = undone_.facts.BlockSize(index);
    const bool is_final_known = size_bytes != 0;
    if (rounded_bytes < wanted_bytes || (is_final_known && size_bytes != by_rule)) {
      ++counts_.rule_disagreements;
    }
    if (!is_final_known) undone_.facts.SetBlockSize(index, size_bytes = by_rule);
    const std::uint32_t id = NewId(
        {.alloc_event = static_cast<EventIndex>(index), .least_bytes = rounded_bytes, .is_size_open = !is_final_known});
    return picture_.AddBlock({.address = event.address, .size_bytes = size_bytes, .id = id});
  }

  // What a placement at `address` says about the block below it.
  void LookBelow(std::uint64_t address, const SegmentRange& segment) {
    const OccupiedBlock* below = picture_.BlockBelow(address);
    const std::uint64_t low = below == nullptr ? segment.address : below->End();
    if (below != nullptr && placed_[below->id].is_size_open) {
      const OccupiedBlock block = *below;
      if (placed_[block.id].alloc_event == kBeforeWindow) {
        if (address >= low && address - low <= placed_[block.id].max_tail_bytes) return Reveal(block, address);
      } else if (address < low && address >= block.address + placed_[block.id].least_bytes) {
        return Shrink(block, address);
      }
    }
    if (address > low) ++counts_.unexplained_gaps;
  }

  void Reveal(const OccupiedBlock& block, std::uint64_t end) {
    SetStartSize(block.id, end - block.address);
    ++counts_.inferred_tails;
  }

  // The rule said the block kept its rest; a block inside that rest says it did not.
  void Shrink(const OccupiedBlock& block, std::uint64_t end) {
    picture_.ResizeBlock(block.address, end - block.address);
    undone_.facts.SetBlockSize(static_cast<std::size_t>(placed_[block.id].alloc_event), end - block.address);
    ++counts_.rule_disagreements;
  }

  absl::Span<const trace::Event> events_;
  const BlockSizeRule& rule_;
  UndoneTrace& undone_;
  Occupancy picture_;
  std::vector<Placed> placed_;
  std::vector<std::uint32_t> free_ids_;
  PlacementCounts counts_;
};

}  // namespace

absl::StatusOr<PlacementCounts> PlaceBlocks(absl::Span<const trace::Event> events, const BlockSizeRule& rule,
                                            UndoneTrace& undone) {
  return PlacementPass(events, rule, undone).Run();
}

}  // namespace ashlar::timeline
