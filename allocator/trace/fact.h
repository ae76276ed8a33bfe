// A fact is something that happened between two events and that a replay needs: an answer of the device, or a call of
// the program that need not lead to an event.
//
//   sink.OnFact(fact::LimitSet{8 * kGiB});
//   if (const auto* refused = std::get_if<fact::GrowthRefused>(&fact.what)) ... refused->bytes ...
//
// The order of the kinds is that of their numbers in recordings (codec_format.h): a new one goes to the end.
#ifndef ASHLAR_ALLOCATOR_TRACE_FACT_H_
#define ASHLAR_ALLOCATOR_TRACE_FACT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "allocator/base/units.h"

namespace ashlar::trace {

namespace fact {

// The program emptied the cache. What was released: the events behind it.
struct CacheEmptied {
  bool operator==(const CacheEmptied&) const = default;
};
// The device, or the limit, refused to grow.
struct GrowthRefused {
  std::uint64_t bytes = 0;
  bool operator==(const GrowthRefused&) const = default;
};
// From now on; nullopt: no limit.
struct LimitSet {
  std::optional<std::uint64_t> bytes;
  bool operator==(const LimitSet&) const = default;
};

// In recordings that name every call (RecordingInfo::has_calls):

// By the program.
struct PoolEmptied {
  PoolId pool;
  bool operator==(const PoolEmptied&) const = default;
};
// The program had garbage collected.
struct GarbageCollected {
  std::uint64_t target_bytes = 0;
  bool operator==(const GarbageCollected&) const = default;
};
// From now on.
struct PoolUsers {
  PoolId pool;
  std::uint64_t count = 0;
  bool operator==(const PoolUsers&) const = default;
};
struct PoolConfigured {
  PoolId pool;
  bool uses_on_oom = false;
  bool no_split = false;
  bool operator==(const PoolConfigured&) const = default;
};
// Requests are routed to the pool; where `is_capture`, a graph is being captured.
struct PoolBegun {
  PoolId pool;
  bool is_capture = false;
  bool operator==(const PoolBegun&) const = default;
};
// They are no more.
struct PoolEnded {
  PoolId pool;
  bool operator==(const PoolEnded&) const = default;
};
// The request under way reserved address space.
struct AddressesReserved {
  std::uint64_t address = 0;
  bool operator==(const AddressesReserved&) const = default;
};
// The next event answers a request for this pool and stream, not for those that it names.
struct AskedFor {
  PoolId pool;
  Stream stream{};
  bool operator==(const AskedFor&) const = default;
};
// The request of the next event was searched for before, and is not again. Where `counts_here`, the fact says nothing
// of the next event: the pool that garbage is collected from was searched here, which made what is free in it older,
// and the request asks again later, after callbacks. From version 3 of the file on.
struct SearchMissed {
  bool counts_here = false;
  bool operator==(const SearchMissed&) const = default;
};
// The request that AskedFor is about failed without an event of its own.
struct GaveUp {
  std::uint64_t bytes = 0;
  bool operator==(const GaveUp&) const = default;
};

// The next event maps pages of this pool of the two. Noted where its size does not tell: Policy::kAshlar.
struct PagesMapped {
  bool is_small_pool = false;
  std::uint64_t large_page_bytes = 0;  // each is one handle of so many, whole MiB; 0: the smallest, or not said
  bool operator==(const PagesMapped&) const = default;
};

// The program changed the settings: from now on they are those of this text, by the rules of the recording's version.
struct SettingsChanged {
  std::string conf;
  bool operator==(const SettingsChanged&) const = default;
};

// The stream of the request under way waits on the device for another one, whose block it is given
// (borrow_across_streams). What is owed after it, for borrow_most_waits: core/ladder.h.
struct StreamWaited {
  std::uint32_t owed = 0;
  bool operator==(const StreamWaited&) const = default;
};
// What was owed when the recording began: after the last wait, and how many requests had been served since.
struct WaitsOwed {
  std::uint32_t owed = 0;
  std::uint32_t served_since = 0;
  bool operator==(const WaitsOwed&) const = default;
};

// The request under way asked the device for the segment of a plan: the next segment, or refusal, is of so many bytes
// (an even number) and of this pool of the two.
struct PlannedSegmentAsked {
  std::uint64_t bytes = 0;
  bool is_small_pool = false;
  bool operator==(const PlannedSegmentAsked&) const = default;
};
// The next event is a block that a plan placed: at exactly its address, whatever the rules would say.
struct PlacedByPlan {
  bool operator==(const PlacedByPlan&) const = default;
};

// The program named the pool: from now on what is free in it goes back as from a pool without users.
struct PoolTagged {
  PoolId pool;
  std::string tag;
  bool operator==(const PoolTagged&) const = default;
};
// The pages of the pool went back to the device, under blocks that live; until PoolWoken. No event says so: a picture
// of the addresses is what it was.
struct PoolSlept {
  PoolId pool;
  bool operator==(const PoolSlept&) const = default;
};
// They are there again. What was freed meanwhile: the events behind it.
struct PoolWoken {
  PoolId pool;
  bool operator==(const PoolWoken&) const = default;
};

// The range is used as it is by somebody else: from now on its memory is not given back, and its pool does not sleep.
struct RangeRegistered {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  bool operator==(const RangeRegistered&) const = default;
};
// The youngest of those that begin there is not any more.
struct RangeUnregistered {
  std::uint64_t address = 0;
  bool operator==(const RangeUnregistered&) const = default;
};

}  // namespace fact

using AnyFact =
    std::variant<fact::CacheEmptied, fact::GrowthRefused, fact::LimitSet, fact::PoolEmptied, fact::GarbageCollected,
                 fact::PoolUsers, fact::PoolConfigured, fact::PoolBegun, fact::PoolEnded, fact::AddressesReserved,
                 fact::AskedFor, fact::SearchMissed, fact::GaveUp, fact::PagesMapped, fact::SettingsChanged,
                 fact::StreamWaited, fact::WaitsOwed, fact::PlannedSegmentAsked, fact::PlacedByPlan, fact::PoolTagged,
                 fact::PoolSlept, fact::PoolWoken, fact::RangeRegistered, fact::RangeUnregistered>;

// Whether the fact is one of these kinds.
template <typename... Kinds>
bool IsAny(const AnyFact& fact) {
  return (std::holds_alternative<Kinds>(fact) || ...);
}

// Whether it is a call of the program, or else something within a request.
inline bool IsCall(const AnyFact& fact) {
  return IsAny<fact::CacheEmptied, fact::LimitSet, fact::PoolEmptied, fact::GarbageCollected, fact::PoolUsers,
               fact::PoolConfigured, fact::PoolBegun, fact::PoolEnded, fact::SettingsChanged, fact::WaitsOwed,
               fact::PoolTagged, fact::PoolSlept, fact::PoolWoken, fact::RangeRegistered, fact::RangeUnregistered>(
      fact);
}

struct Fact {
  AnyFact what;
  std::uint64_t event = 0;  // how many events of the device were made before it

  bool operator==(const Fact&) const = default;
};

}  // namespace ashlar::trace

#endif  // ASHLAR_ALLOCATOR_TRACE_FACT_H_
