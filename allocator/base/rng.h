// SplitMix64: a small generator with the same numbers on every machine, for simulations and property tests.
// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014 (public algorithm).
#ifndef ASHLAR_ALLOCATOR_BASE_RNG_H_
#define ASHLAR_ALLOCATOR_BASE_RNG_H_

#include <cstdint>

namespace ashlar {

class Rng {
 public:
  explicit Rng(std::uint64_t seed) : state_(seed) {}

  std::uint64_t Next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  // Uniform in [0, bound), bound > 0. The modulo bias is below bound / 2^64.
  std::uint64_t Below(std::uint64_t bound) { return Next() % bound; }

  // Uniform in [low, high).
  std::uint64_t Between(std::uint64_t low, std::uint64_t high) { return low + Below(high - low); }

  double Unit() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace ashlar

#endif  // ASHLAR_ALLOCATOR_BASE_RNG_H_
