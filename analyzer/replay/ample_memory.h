// The memory of a device that never runs out, in bytes: what is simulated where a capacity is not known.
#ifndef ASHLAR_ANALYZER_REPLAY_AMPLE_MEMORY_H_
#define ASHLAR_ANALYZER_REPLAY_AMPLE_MEMORY_H_

#include <cstdint>

namespace ashlar::replay {

// A recording on such a device names it as the device's total: a reader takes that total as not known.
inline constexpr std::uint64_t kAmpleBytes = std::uint64_t{1} << 46;

}  // namespace ashlar::replay

#endif  // ASHLAR_ANALYZER_REPLAY_AMPLE_MEMORY_H_
