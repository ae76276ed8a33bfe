// Occupancy keeps the segments of a device's address space and their occupied parts at one moment: the moving picture
// under a rewind, a placement pass and a timeline. A step that would make two ranges overlap, or take away memory that
// is occupied, is refused with a sentence that says what is in the way; the picture is then unchanged. Costs O(log n) a
// step. Not thread-safe.
//
//   Occupancy picture;
//   picture.AddSegment({.address = 0x1000, .size_bytes = 4096});
//   picture.AddBlock({.address = 0x1000, .size_bytes = 512});
//   picture.GapEnd(0x1200);  // 0x2000: free up to the segment's end
#ifndef ASHLAR_ANALYZER_TIMELINE_OCCUPANCY_H_
#define ASHLAR_ANALYZER_TIMELINE_OCCUPANCY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "allocator/base/units.h"
#include "allocator/trace/event.h"
#include "analyzer/timeline/block_size_rule.h"

namespace ashlar::timeline {

// The one sentence for records that contradict each other: which event, what it asks, what was found instead.

// "0x7f0000000200"
std::string FormatAddress(std::uint64_t address);

// FailedPrecondition: "device 0, event 12 at byte 3456 (alloc of 512 B at 0x7f0000000200): <what>"; the byte where
// the event has one.
absl::Status Disagreement(int device, std::int64_t event_index, const trace::Event& event, absl::string_view what);

// The facts of one event beyond its record: the size of the block it made, the pool of the segment it made, whether
// freshly mapped memory joined its neighbours.
struct EventFacts {
  std::uint64_t block_size_bytes = 0;      // kAlloc: size of the block; 0 = not known or not an allocation
  std::optional<bool> is_small_pool = {};  // kSegmentAlloc, kSegmentMap; nullopt: by the size
  std::optional<PoolId> pool = {};         // kSegmentAlloc, kSegmentMap; nullopt: the event's, else the default pool
  std::optional<bool> joins_left = {};     // kSegmentMap: continues the mapped range that ends there; nullopt: if alike
  std::optional<bool> joins_right = {};    // kSegmentMap: continues into the mapped range that begins there
};

// Those of a whole trace, by the event's index: 8 bytes an event, and more for the few that change segments.
class FactColumns {
 public:
  explicit FactColumns(std::size_t events = 0) : block_sizes_(events, 0) {}

  std::uint64_t BlockSize(std::size_t event) const { return block_sizes_[event]; }
  void SetBlockSize(std::size_t event, std::uint64_t bytes) { block_sizes_[event] = bytes; }
  void SetSegment(std::size_t event, const EventFacts& facts) { segments_[event] = facts; }
  // `is_of_segment`: the event is one that SetSegment may have been told of.
  EventFacts At(std::size_t event, bool is_of_segment) const {
    if (!is_of_segment) return {.block_size_bytes = block_sizes_[event]};
    const auto it = segments_.find(event);
    return it == segments_.end() ? EventFacts{} : it->second;
  }

 private:
  std::vector<std::uint64_t> block_sizes_;
  absl::flat_hash_map<std::size_t, EventFacts> segments_;  // only looked up
};

struct OccupiedBlock {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  std::uint32_t id = 0;  // the caller's
  bool is_pending = false;

  std::uint64_t End() const { return address + size_bytes; }
};

struct SegmentRange {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  Stream stream{};
  bool is_small_pool = false;
  bool is_expandable = false;
  bool is_pool_known = true;  // false: is_small_pool and pool are a guess so far
  PoolId pool = {};
  trace::StackId stack = trace::kNoStack;
  std::uint32_t id = 0;  // the caller's

  std::uint64_t End() const { return address + size_bytes; }
  SegmentKind Kind() const { return {is_small_pool, is_expandable}; }
};

class Occupancy {
 public:
  using BlockMap = absl::btree_map<std::uint64_t, OccupiedBlock>;   // by address
  using SegmentMap = absl::btree_map<std::uint64_t, SegmentRange>;  // by address

  const BlockMap& blocks() const { return blocks_; }
  const SegmentMap& segments() const { return segments_; }

  // Pointers stay good until the next step.
  const SegmentRange* SegmentAround(std::uint64_t address) const;
  const SegmentRange* SegmentStartingAt(std::uint64_t address) const;
  const SegmentRange* SegmentEndingAt(std::uint64_t address) const;
  SegmentRange* SegmentAround(std::uint64_t address);
  OccupiedBlock* BlockAt(std::uint64_t address);
  // The nearest block that starts below `address` in the same segment; null if there is none.
  const OccupiedBlock* BlockBelow(std::uint64_t address) const;
  // Where the next block above `address` starts, or the segment ends; `address` lies in a segment.
  std::uint64_t GapEnd(std::uint64_t address) const;

  absl::Status AddBlock(const OccupiedBlock& block);
  void RemoveBlock(std::uint64_t address);
  // `size_bytes` must keep the block inside its gap.
  void ResizeBlock(std::uint64_t address, std::uint64_t size_bytes);

  absl::Status AddSegment(const SegmentRange& segment);
  // The whole segment, without blocks.
  absl::Status RemoveSegment(std::uint64_t address, std::uint64_t size_bytes);

  // Adds a mapped range and joins it to the expandable ranges that touch it. The lowest of the joined ranges keeps
  // its identity and attributes.
  absl::Status Map(const SegmentRange& piece, bool joins_left, bool joins_right);
  // Takes an unoccupied range out of an expandable segment. What is left below keeps the segment's id; what is left
  // above keeps it if nothing is left below, and is `upper_id` otherwise.
  absl::Status Unmap(std::uint64_t address, std::uint64_t size_bytes, std::uint32_t upper_id);

 private:
  // What SegmentAround found last, until segments change: one step asks for the same several times. Not copied.
  struct Found {
    Found() = default;
    Found(const Found&) {}
    Found& operator=(const Found&) {  // NOLINT(bugprone-unhandled-self-assignment): forgets, whoever assigns
      range = nullptr;
      return *this;
    }
    const SegmentRange* range = nullptr;
  };

  absl::Status CheckUnoccupied(std::uint64_t address, std::uint64_t end) const;

  BlockMap blocks_;
  SegmentMap segments_;
  mutable Found last_found_;
};

// One segment event, done forwards to an occupancy picture: the step a placement pass and a timeline share.

bool IsSegmentEvent(trace::Action action);

// `new_id` names the segment that the event makes: the new one, or the upper rest of a range that an unmap cuts in
// two. The status says what was expected and what was found, without naming the event.
absl::Status ApplySegmentEvent(const trace::Event& event, const EventFacts& facts, std::uint32_t new_id,
                               Occupancy& picture);

}  // namespace ashlar::timeline

#endif  // ASHLAR_ANALYZER_TIMELINE_OCCUPANCY_H_
