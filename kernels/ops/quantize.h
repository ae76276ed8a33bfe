// The 8-bit codes of AdamW8Bit: 256 values in [-1, 1] or [0, 1], dense near 0, that scale with the largest magnitude of
// a block. Built as bitsandbytes' create_dynamic_map(signed, 7, 8) builds them (Dettmers et al., arXiv 2110.02861,
// section 2.2): for each power of ten 1e-6 .. 1e0 the midpoints of 2^i (unsigned 2^(i+1)) equal steps of [0.1, 1], with
// both signs if signed, and 0 and 1.
#ifndef ASHLAR_KERNELS_OPS_QUANTIZE_H_
#define ASHLAR_KERNELS_OPS_QUANTIZE_H_

#include <array>
#include <cstdint>

#include "kernels/ops/host_device.h"

namespace ashlar::ops {

using Map8Bit = std::array<float, 256>;
const Map8Bit& SignedMap8Bit();    // ascending; code 127 is 0
const Map8Bit& UnsignedMap8Bit();  // ascending; code 0 is 0
inline constexpr std::uint8_t kSignedZeroCode = 127;
inline constexpr std::uint8_t kUnsignedZeroCode = 0;

// The code of the value nearest to `x` in the ascending `map` of 256; of two as near, the smaller.
ASHLAR_HOST_DEVICE std::uint8_t NearestCode(const float* map, float x) {
  int low = 0;
  int high = 255;  // map[low] < x <= map[high], but at the ends
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (map[middle] < x) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return static_cast<std::uint8_t>(map[high] - x < x - map[low] ? high : low);
}

}  // namespace ashlar::ops

#endif  // ASHLAR_KERNELS_OPS_QUANTIZE_H_
