// A fact is something that happened between two events and that a replay needs: an answer of the device, or a call of
// the program that need not lead to an event.
#ifndef ASHLAR_ALLOCATOR_TRACE_FACT_H_
#define ASHLAR_ALLOCATOR_TRACE_FACT_H_

#include <cstdint>

#include "allocator/base/units.h"

namespace ashlar::trace {

enum class FactKind : std::uint8_t {
  kEmptyCache,  // the program emptied the cache; `bytes` = 0. What was released: the events behind it
  kRefused,     // the device, or the limit, refused to grow by `bytes` bytes
  kLimit,       // at most `bytes` bytes from now on; kNoLimit: no limit

  // In recordings that name every call (RecordingInfo::has_calls):
  kEmptyPool,       // the program emptied `pool`
  kCollectGarbage,  // the program had garbage of `bytes` bytes collected
  kPoolUsers,       // `pool` has `bytes` users from now on
  kPoolTraits,      // of `pool`: `bytes` is the sum of kUsesOnOom and kNoSplit
  kPoolBegin,       // requests are routed to `pool`; `bytes` 1: a graph is being captured
  kPoolEnd,         // no more
  kReserved,        // the request under way reserved address space at the address `bytes`
  kAsked,           // the next event answers a request for `pool` and the stream `bytes`, not for those it names
  kMissed,          // the request of the next event was searched for before, and is not again (but: kSearchedHere)
  kGaveUp,          // the request of `bytes` bytes that kAsked is about failed without an event of its own
};
inline constexpr FactKind kLastFactKind = FactKind::kGaveUp;

inline constexpr std::uint64_t kUsesOnOom = 1;
inline constexpr std::uint64_t kNoSplit = 2;

// Whether facts of this kind name a pool.
constexpr bool NamesPool(FactKind kind) {
  return kind == FactKind::kEmptyPool || kind == FactKind::kAsked ||
         (kind >= FactKind::kPoolUsers && kind <= FactKind::kPoolEnd);
}

// Whether it is a call of the program, or else something within a request.
constexpr bool IsCall(FactKind kind) {
  return kind == FactKind::kEmptyCache || (kind >= FactKind::kLimit && kind <= FactKind::kPoolEnd);
}

inline constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

struct Fact {
  FactKind kind = FactKind::kEmptyCache;
  std::uint64_t bytes = 0;
  std::uint64_t event = 0;  // how many events of the device were made before it
  PoolId pool = {};         // where NamesPool(kind)

  bool operator==(const Fact&) const = default;
};

}  // namespace ashlar::trace

#endif  // ASHLAR_ALLOCATOR_TRACE_FACT_H_
