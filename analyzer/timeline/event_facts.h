// The facts of one event beyond its record: the size of the block it made, the pool of the segment it made, whether
// freshly mapped memory joined its neighbours.
#ifndef ASHLAR_ANALYZER_TIMELINE_EVENT_FACTS_H_
#define ASHLAR_ANALYZER_TIMELINE_EVENT_FACTS_H_

#include <cstdint>
#include <optional>

#include "allocator/base/units.h"

namespace ashlar::timeline {

struct EventFacts {
  std::uint64_t block_size_bytes = 0;      // kAlloc: size of the block; 0 = not known or not an allocation
  std::optional<bool> is_small_pool = {};  // kSegmentAlloc, kSegmentMap; nullopt: by the size
  std::optional<PoolId> pool = {};         // kSegmentAlloc, kSegmentMap; nullopt: the event's, else the default pool
  std::optional<bool> joins_left = {};     // kSegmentMap: continues the mapped range that ends there; nullopt: if alike
  std::optional<bool> joins_right = {};    // kSegmentMap: continues into the mapped range that begins there
};

}  // namespace ashlar::timeline

#endif  // ASHLAR_ANALYZER_TIMELINE_EVENT_FACTS_H_
