// SoftLimitCrossing is what a soft limit's callback is given: the limit, the reserved bytes, and the segment that would
// cross it (Allocator::SetSoftLimit).
#ifndef ASHLAR_SOFT_LIMIT_H_
#define ASHLAR_SOFT_LIMIT_H_

#include <cstdint>
#include <functional>

namespace ashlar {

struct SoftLimitCrossing {
  std::uint64_t limit_bytes = 0;
  std::uint64_t reserved_bytes = 0;  // now, at most the limit
  std::uint64_t wanted_bytes = 0;    // the new segment that takes it above
};
using SoftLimitCallback = std::function<void(const SoftLimitCrossing&)>;

}  // namespace ashlar

#endif  // ASHLAR_SOFT_LIMIT_H_
