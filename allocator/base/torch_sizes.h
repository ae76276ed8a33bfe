// The sizes by which PyTorch's caching allocator decides, the same in every release so far. Source:
// c10/cuda/CUDACachingAllocator.cpp of PyTorch 1.13.1 and 2.6.0, c10/core/CachingDeviceAllocator.h of 2.12.
#ifndef ASHLAR_ALLOCATOR_BASE_TORCH_SIZES_H_
#define ASHLAR_ALLOCATOR_BASE_TORCH_SIZES_H_

#include <cstdint>

#include "allocator/base/units.h"

namespace ashlar {

inline constexpr std::uint64_t kMinBlockBytes = 512;           // every block is a multiple
inline constexpr std::uint64_t kSmallMaxBytes = kMiB;          // largest rounded size of the small pool
inline constexpr std::uint64_t kSmallSegmentBytes = 2 * kMiB;  // segments, and pages, of the small pool
inline constexpr std::uint64_t kDefaultLargeSegmentBytes = 20 * kMiB;
inline constexpr std::uint64_t kMinLargeBytes = 10 * kMiB;   // from here on a segment fits its request
inline constexpr std::uint64_t kRoundLargeBytes = 2 * kMiB;  // to a multiple of this

}  // namespace ashlar

#endif  // ASHLAR_ALLOCATOR_BASE_TORCH_SIZES_H_
