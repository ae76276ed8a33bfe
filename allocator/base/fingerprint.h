// A 64-bit fingerprint of a sequence of integers: equal sequences give equal fingerprints on every machine. It is
// for comparing decisions, not for security. FNV-1a over 64-bit words with a final mix.
#ifndef ASHLAR_ALLOCATOR_BASE_FINGERPRINT_H_
#define ASHLAR_ALLOCATOR_BASE_FINGERPRINT_H_

#include <cstdint>

namespace ashlar {

class Fingerprint {
 public:
  void Add(std::uint64_t word) {
    state_ = (state_ ^ word) * 0x100000001b3u;
    state_ ^= state_ >> 32;
  }
  std::uint64_t value() const {
    std::uint64_t z = state_ * 0x9e3779b97f4a7c15u;
    return z ^ (z >> 29);
  }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325u;
};

}  // namespace ashlar

#endif  // ASHLAR_ALLOCATOR_BASE_FINGERPRINT_H_
