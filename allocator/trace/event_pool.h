// The pool that an event names, or none: std::optional<PoolId> in three bytes, of which a snapshot holds one an event.
//
//   EventPool pool = PoolId{0, 7};
//   if (pool.has_value()) Use(*pool);   // PoolId{0, 7}
//
// Ids as allocators count them are in the value itself: one half is zero and the other small, or counted from 2^40 on
// (allocator/c). Any other id is kept in a table of the process, which holds kMostOthers of them: what does not fit
// becomes no pool, so a reader of files asks CanHold first. Threads: any; only ids of the table take a lock.
#ifndef ASHLAR_ALLOCATOR_TRACE_EVENT_POOL_H_
#define ASHLAR_ALLOCATOR_TRACE_EVENT_POOL_H_

#include <array>
#include <cstdint>
#include <optional>

#include "allocator/base/units.h"

namespace ashlar::trace {

class EventPool {
 public:
  static constexpr std::uint32_t kMostOthers = std::uint32_t{1} << 22;

  constexpr EventPool() = default;
  constexpr EventPool(std::nullopt_t) {}                // NOLINT: as std::optional has it
  EventPool(const PoolId& pool) { Put(CodeOf(pool)); }  // NOLINT
  EventPool(const std::optional<PoolId>& pool) {        // NOLINT
    if (pool.has_value()) Put(CodeOf(*pool));
  }

  bool has_value() const { return code_ != std::array<std::uint8_t, 3>{}; }
  PoolId operator*() const { return PoolOf(Code()); }
  PoolId value() const { return **this; }
  PoolId value_or(const PoolId& other) const { return has_value() ? **this : other; }
  std::optional<PoolId> AsOptional() const { return has_value() ? std::optional(**this) : std::nullopt; }
  void reset() { code_ = {}; }

  // False for an id that neither is small nor finds a place in the table. Takes the place.
  static bool CanHold(const PoolId& pool) { return CodeOf(pool) != kNone; }

  // Equal iff both name the same pool or none.
  bool operator==(const EventPool&) const = default;

 private:
  // Two bits say how to read the other 22: {0, n}, {n, 0}, {0, 2^40 + n}, or the n-th of the table. No pool is 0, so
  // that the first begins at 1.
  static constexpr std::uint32_t kPayloadBits = 22;
  static constexpr std::uint32_t kPayload = (std::uint32_t{1} << kPayloadBits) - 1;
  static constexpr std::uint64_t kFirstOfC = std::uint64_t{1} << 40;
  static constexpr std::uint32_t kNone = 0;
  enum Form : std::uint32_t { kSecond, kFirst, kSecondOfC, kOther };

  static std::uint32_t CodeOf(const PoolId& pool) {
    if (pool.first == 0 && pool.second < kPayload) return static_cast<std::uint32_t>(pool.second + 1);
    if (pool.second == 0 && pool.first <= kPayload)
      return kFirst << kPayloadBits | static_cast<std::uint32_t>(pool.first);
    if (pool.first == 0 && pool.second - kFirstOfC <= kPayload) {
      return kSecondOfC << kPayloadBits | static_cast<std::uint32_t>(pool.second - kFirstOfC);
    }
    return CodeOfOther(pool);
  }
  static PoolId PoolOf(std::uint32_t code) {
    const std::uint32_t payload = code & kPayload;
    switch (code >> kPayloadBits) {
      case kSecond:
        return {0, payload - std::uint64_t{1}};
      case kFirst:
        return {payload, 0};
      case kSecondOfC:
        return {0, kFirstOfC + payload};
      default:
        return Other(payload);
    }
  }
  static std::uint32_t CodeOfOther(const PoolId& pool);  // kNone where the table is full
  static PoolId Other(std::uint32_t index);

  std::uint32_t Code() const { return code_[0] | std::uint32_t{code_[1]} << 8 | std::uint32_t{code_[2]} << 16; }
  void Put(std::uint32_t code) {
    code_ = {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(code >> 8),
             static_cast<std::uint8_t>(code >> 16)};
  }

  std::array<std::uint8_t, 3> code_{};
};

}  // namespace ashlar::trace

#endif  // ASHLAR_ALLOCATOR_TRACE_EVENT_POOL_H_
