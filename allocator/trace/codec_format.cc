#include "allocator/trace/codec_format.h"

#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include "allocator/base/check.h"

namespace ashlar::trace::codec {
namespace {

constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};
constexpr std::uint64_t kUsesOnOom = 1;
constexpr std::uint64_t kNoSplit = 2;
constexpr std::uint64_t kCapture = 1;
constexpr std::uint64_t kCountsHere = 1;
constexpr std::uint64_t kSmallPool = 1;
constexpr std::uint64_t kSmallPlannedSegment = 1;  // beside its bytes, which are even

std::uint64_t Number(const fact::CacheEmptied&) { return 0; }
std::uint64_t Number(const fact::GrowthRefused& refused) { return refused.bytes; }
std::uint64_t Number(const fact::LimitSet& limit) { return limit.bytes.value_or(kNoLimit); }
std::uint64_t Number(const fact::PoolEmptied&) { return 0; }
std::uint64_t Number(const fact::GarbageCollected& collected) { return collected.target_bytes; }
std::uint64_t Number(const fact::PoolUsers& users) { return users.count; }
std::uint64_t Number(const fact::PoolConfigured& traits) {
  return (traits.uses_on_oom ? kUsesOnOom : 0) + (traits.no_split ? kNoSplit : 0);
}
std::uint64_t Number(const fact::PoolBegun& begun) { return begun.is_capture ? kCapture : 0; }
std::uint64_t Number(const fact::PoolEnded&) { return 0; }
std::uint64_t Number(const fact::AddressesReserved& reserved) { return reserved.address; }
std::uint64_t Number(const fact::AskedFor& asked) { return Handle(asked.stream); }
std::uint64_t Number(const fact::SearchMissed& missed) { return missed.counts_here ? kCountsHere : 0; }
std::uint64_t Number(const fact::GaveUp& gave_up) { return gave_up.bytes; }
std::uint64_t Number(const fact::PagesMapped& mapped) {
  return RoundDown(mapped.large_page_bytes, kMiB) + (mapped.is_small_pool ? kSmallPool : 0);
}
std::uint64_t Number(const fact::SettingsChanged&) { return 0; }
std::uint64_t Number(const fact::StreamWaited& waited) { return waited.owed; }
std::uint64_t Number(const fact::WaitsOwed& waits) { return std::uint64_t{waits.served_since} << 32 | waits.owed; }
std::uint64_t Number(const fact::PlannedSegmentAsked& asked) {
  return asked.bytes | (asked.is_small_pool ? kSmallPlannedSegment : 0);
}
std::uint64_t Number(const fact::PlacedByPlan&) { return 0; }
std::uint64_t Number(const fact::PoolTagged&) { return 0; }
std::uint64_t Number(const fact::PoolSlept&) { return 0; }
std::uint64_t Number(const fact::PoolWoken&) { return 0; }
std::uint64_t Number(const fact::RangeRegistered& range) { return range.address; }
std::uint64_t Number(const fact::RangeUnregistered& range) { return range.address; }

void SetNumber(fact::CacheEmptied&, std::uint64_t) {}
void SetNumber(fact::GrowthRefused& refused, std::uint64_t number) { refused.bytes = number; }
void SetNumber(fact::LimitSet& limit, std::uint64_t number) {
  limit.bytes = number == kNoLimit ? std::nullopt : std::optional(number);
}
void SetNumber(fact::PoolEmptied&, std::uint64_t) {}
void SetNumber(fact::GarbageCollected& collected, std::uint64_t number) { collected.target_bytes = number; }
void SetNumber(fact::PoolUsers& users, std::uint64_t number) { users.count = number; }
void SetNumber(fact::PoolConfigured& traits, std::uint64_t number) {
  traits.uses_on_oom = (number & kUsesOnOom) != 0;
  traits.no_split = (number & kNoSplit) != 0;
}
void SetNumber(fact::PoolBegun& begun, std::uint64_t number) { begun.is_capture = number == kCapture; }
void SetNumber(fact::PoolEnded&, std::uint64_t) {}
void SetNumber(fact::AddressesReserved& reserved, std::uint64_t number) { reserved.address = number; }
void SetNumber(fact::AskedFor& asked, std::uint64_t number) { asked.stream = Stream{number}; }
void SetNumber(fact::SearchMissed& missed, std::uint64_t number) { missed.counts_here = number == kCountsHere; }
void SetNumber(fact::GaveUp& gave_up, std::uint64_t number) { gave_up.bytes = number; }
void SetNumber(fact::PagesMapped& mapped, std::uint64_t number) {
  mapped.is_small_pool = (number & kSmallPool) != 0;
  mapped.large_page_bytes = RoundDown(number, kMiB);
}
void SetNumber(fact::SettingsChanged&, std::uint64_t) {}
void SetNumber(fact::StreamWaited& waited, std::uint64_t number) { waited.owed = static_cast<std::uint32_t>(number); }
void SetNumber(fact::WaitsOwed& waits, std::uint64_t number) {
  waits.owed = static_cast<std::uint32_t>(number);
  waits.served_since = static_cast<std::uint32_t>(number >> 32);
}
void SetNumber(fact::PlannedSegmentAsked& asked, std::uint64_t number) {
  asked.bytes = number & ~kSmallPlannedSegment;
  asked.is_small_pool = (number & kSmallPlannedSegment) != 0;
}
void SetNumber(fact::PlacedByPlan&, std::uint64_t) {}
void SetNumber(fact::PoolTagged&, std::uint64_t) {}
void SetNumber(fact::PoolSlept&, std::uint64_t) {}
void SetNumber(fact::PoolWoken&, std::uint64_t) {}
void SetNumber(fact::RangeRegistered& range, std::uint64_t number) { range.address = number; }
void SetNumber(fact::RangeUnregistered& range, std::uint64_t number) { range.address = number; }

auto& TextOf(fact::SettingsChanged& changed) { return changed.conf; }
auto& TextOf(const fact::SettingsChanged& changed) { return changed.conf; }
auto& TextOf(fact::PoolTagged& tagged) { return tagged.tag; }
auto& TextOf(const fact::PoolTagged& tagged) { return tagged.tag; }

template <typename Kind>
concept HasPool = requires(Kind kind) { kind.pool; };
template <typename Kind>
concept HasSize = requires(Kind kind) { kind.size_bytes; };
template <typename Kind>
concept HasText = requires(Kind kind) { TextOf(kind); };

// One of each kind, in their order.
template <std::size_t... kKinds>
std::array<AnyFact, sizeof...(kKinds)> OneOfEach(std::index_sequence<kKinds...>) {
  return {AnyFact(std::in_place_index<kKinds>)...};
}
const AnyFact& EmptyFact(std::uint64_t kind) {
  static const std::array<AnyFact, kFactKinds> facts = OneOfEach(std::make_index_sequence<kFactKinds>());
  ASHLAR_CHECK(kind < kFactKinds);
  return facts[kind];
}

}  // namespace

FactNumbers NumbersOf(const AnyFact& fact) {
  return std::visit(
      [&fact](const auto& kind) {
        FactNumbers out{.kind = fact.index(), .number = Number(kind)};
        if constexpr (HasPool<decltype(kind)>) out.pool = kind.pool;
        if constexpr (HasSize<decltype(kind)>) out.size_bytes = kind.size_bytes;
        if constexpr (HasText<decltype(kind)>) out.text = TextOf(kind);
        return out;
      },
      fact);
}

bool NamesPool(std::uint64_t kind) {
  return std::visit([](const auto& one) { return HasPool<decltype(one)>; }, EmptyFact(kind));
}

bool NamesSize(std::uint64_t kind) {
  return std::visit([](const auto& one) { return HasSize<decltype(one)>; }, EmptyFact(kind));
}

bool NamesText(std::uint64_t kind) {
  return std::visit([](const auto& one) { return HasText<decltype(one)>; }, EmptyFact(kind));
}

AnyFact FactOf(const FactNumbers& numbers) {
  AnyFact out = EmptyFact(numbers.kind);
  std::visit(
      [&numbers](auto& kind) {
        SetNumber(kind, numbers.number);
        if constexpr (HasPool<decltype(kind)>) kind.pool = numbers.pool.value_or(PoolId{});
        if constexpr (HasSize<decltype(kind)>) kind.size_bytes = numbers.size_bytes.value_or(0);
        if constexpr (HasText<decltype(kind)>) TextOf(kind) = std::string(numbers.text.value_or(""));
      },
      out);
  return out;
}

}  // namespace ashlar::trace::codec
