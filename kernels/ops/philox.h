// Philox 4x32-10, a counter-based generator: four 32-bit words of each 128-bit counter, no state, the same on host and
// device. Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011; checked against
// the known answers published with Random123.
#ifndef ASHLAR_KERNELS_OPS_PHILOX_H_
#define ASHLAR_KERNELS_OPS_PHILOX_H_

#include <cstdint>

#include "kernels/ops/kinds.h"

namespace ashlar::ops {

struct PhiloxWords {
  std::uint32_t word[4];
};

ASHLAR_HOST_DEVICE PhiloxWords Philox(PhiloxWords counter, std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xd2511f53u} * counter.word[0];
    const std::uint64_t product1 = std::uint64_t{0xcd9e8d57u} * counter.word[2];
    counter = {
        {static_cast<std::uint32_t>(product1 >> 32) ^ counter.word[1] ^ key0, static_cast<std::uint32_t>(product1),
         static_cast<std::uint32_t>(product0 >> 32) ^ counter.word[3] ^ key1, static_cast<std::uint32_t>(product0)}};
    key0 += 0x9e3779b9u;
    key1 += 0xbb67ae85u;
  }
  return counter;
}

// The words of a 64-bit counter and seed, as RandomKey means them.
ASHLAR_HOST_DEVICE PhiloxWords PhiloxAt(std::uint64_t seed, std::uint64_t counter) {
  return Philox({{static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), 0, 0}},
                static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
}

// Dropout keeps an element whose upper 24 bits are at least this: p in 24-bit steps, rounded up.
ASHLAR_HOST_DEVICE std::uint32_t DropThreshold(double p) {
  const double steps = p * 16777216.0;
  const std::uint32_t whole = static_cast<std::uint32_t>(steps);
  return whole + (static_cast<double>(whole) < steps ? 1 : 0);
}
ASHLAR_HOST_DEVICE bool IsKept(std::uint32_t word, std::uint32_t threshold) { return (word >> 8) >= threshold; }

}  // namespace ashlar::ops

#endif  // ASHLAR_KERNELS_OPS_PHILOX_H_
