// The facts of one event beyond its record: the size of the block it made, the pool of the segment it made, whether
// freshly mapped memory joined its neighbours.
#ifndef ASHLAR_ANALYZER_TIMELINE_EVENT_FACTS_H_
#define ASHLAR_ANALYZER_TIMELINE_EVENT_FACTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "allocator/base/units.h"

namespace ashlar::timeline {

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

}  // namespace ashlar::timeline

#endif  // ASHLAR_ANALYZER_TIMELINE_EVENT_FACTS_H_
