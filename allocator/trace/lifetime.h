// One allocation as offline packing sees it: alive in [lower, upper), in any unit of time, `size` bytes.
#ifndef ASHLAR_ALLOCATOR_TRACE_LIFETIME_H_
#define ASHLAR_ALLOCATOR_TRACE_LIFETIME_H_

#include <cstdint>

namespace ashlar::trace {

struct Lifetime {
  std::int64_t lower = 0;
  std::int64_t upper = 0;  // > lower
  std::uint64_t size = 0;

  bool Meets(const Lifetime& other) const { return lower < other.upper && other.lower < upper; }
  bool operator==(const Lifetime&) const = default;
};

}  // namespace ashlar::trace

#endif  // ASHLAR_ALLOCATOR_TRACE_LIFETIME_H_
