// What lies between an allocator's decisions and made them what they are: answers of the world, and calls of the
// program that need not lead to a decision.
#ifndef ASHLAR_ALLOCATOR_TRACE_FACT_H_
#define ASHLAR_ALLOCATOR_TRACE_FACT_H_

#include <cstdint>

namespace ashlar::trace {

enum class FactKind : std::uint8_t {
  kEmptyCache,  // the program emptied the cache, or a pool of it; `bytes` = 0. What was released: the events behind it
  kRefused,     // the device, or the limit, refused to grow by `bytes` bytes
  kLimit,       // at most `bytes` bytes from now on; kNoLimit: no limit
};

inline constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

struct Fact {
  FactKind kind = FactKind::kEmptyCache;
  std::uint64_t bytes = 0;
  std::uint64_t event = 0;  // how many events of the device were made before it

  bool operator==(const Fact&) const = default;
};

}  // namespace ashlar::trace

#endif  // ASHLAR_ALLOCATOR_TRACE_FACT_H_
