// The event vocabulary: what an allocator decided, one event a decision. A recorder writes these, a snapshot holds
// them, a replay makes them again; they are compared field by field.
//
//   address      device address; for kOom the device's free bytes, as PyTorch records it
//   size_bytes   requested bytes for kAlloc and kFree*; the rounded request for kOom; segment or mapped bytes for
//                kSegment*
//   stream       the stream the block or segment belongs to
#ifndef ASHLAR_ALLOCATOR_TRACE_EVENT_H_
#define ASHLAR_ALLOCATOR_TRACE_EVENT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "allocator/base/units.h"

namespace ashlar::trace {

// The pool that an event names, or none: std::optional<PoolId> in three bytes, of which a snapshot holds one an event.
//
//   EventPool pool = PoolId{0, 7};
//   if (pool.has_value()) Use(*pool);   // PoolId{0, 7}
//
// Ids as allocators count them are in the value itself: one half is zero and the other small, or counted from 2^40 on
// (allocator/api/c). Any other id is kept in a table of the process, which holds kMostOthers of them: what does not fit
// becomes no pool, so a reader of files asks CanHold first. Threads: any; only ids of the table take a lock.
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

enum class Action : std::uint8_t {
  kAlloc,
  kFreeRequested,
  kFreeCompleted,
  kSegmentAlloc,
  kSegmentFree,
  kSegmentMap,
  kSegmentUnmap,
  kOom,
  kSnapshot,
  kAnnotate,
  kUnknown,  // an action this version does not know; the reader's notes name and count it
};

// An event by which the allocator obtained memory of the device.
constexpr bool IsGrowth(Action action) { return action == Action::kSegmentAlloc || action == Action::kSegmentMap; }

// PyTorch's spelling ("alloc", "free_requested", ...).
absl::string_view ActionName(Action action);
std::optional<Action> ParseAction(absl::string_view name);

// Index of an interned call stack in a StackTable.
using StackId = std::uint32_t;
inline constexpr StackId kNoStack = std::numeric_limits<StackId>::max();

// Index of the texts that the program put on an event, in a LabelTable.
using LabelId = std::uint32_t;
inline constexpr LabelId kNoLabel = std::numeric_limits<LabelId>::max();

inline constexpr std::int64_t kNoTime = std::numeric_limits<std::int64_t>::min();

inline constexpr std::uint32_t kNoByte = std::numeric_limits<std::uint32_t>::max();

// 56 bytes: traces of ten million events are held whole.
struct Event {
  Action action = Action::kUnknown;
  EventPool pool;                     // where the trace names one (PyTorch entries do from 2026 on)
  std::uint32_t file_byte = kNoByte;  // where its record begins in the file it was read from, for error messages
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  Stream stream{};
  std::int64_t time_us = kNoTime;  // microseconds of the recorder's clock, kNoTime where the trace has none
  StackId stack = kNoStack;
  LabelId label = kNoLabel;
  std::uint64_t block_size_bytes = 0;  // kAlloc, kFree*: what the block spans, where the record says; else 0
};
static_assert(sizeof(Event) == 56);

// The events of a trace, shared: a copy costs nothing and is the same events, until one of them is changed. So a
// snapshot, its timeline and its replay hold one array of what may be ten million events.
//
//   EventList trace = snapshot.device_traces[0];      // no copy
//   for (const Event& event : trace) Look(event);
//   trace.Mutable().pop_back();                       // its own events from here on
//
// Threads: as std::vector; copies that share events may be used from several threads.
class EventList {
 public:
  using value_type = Event;
  using const_iterator = const Event*;
  using iterator = const_iterator;
  using size_type = std::size_t;

  EventList() = default;
  EventList(std::vector<Event> events)  // NOLINT: a vector is such a list
      : events_(std::make_shared<std::vector<Event>>(std::move(events))) {}
  EventList(std::initializer_list<Event> events) : EventList(std::vector<Event>(events)) {}
  template <typename Iterator>
  EventList(Iterator begin, Iterator end) : EventList(std::vector<Event>(begin, end)) {}

  operator const std::vector<Event>&() const { return Get(); }  // NOLINT: and the other way round

  bool empty() const { return Get().empty(); }
  std::size_t size() const { return Get().size(); }
  const Event* data() const { return Get().data(); }
  const Event* begin() const { return data(); }
  const Event* end() const { return data() + size(); }
  std::reverse_iterator<const Event*> rbegin() const { return std::make_reverse_iterator(end()); }
  std::reverse_iterator<const Event*> rend() const { return std::make_reverse_iterator(begin()); }
  const Event& operator[](std::size_t i) const { return Get()[i]; }
  const Event& at(std::size_t i) const { return Get().at(i); }
  const Event& front() const { return Get().front(); }
  const Event& back() const { return Get().back(); }

  // The events as this list's own: copied first where another list shares them.
  std::vector<Event>& Mutable() {
    if (events_ == nullptr || events_.use_count() > 1) events_ = std::make_shared<std::vector<Event>>(Get());
    return *events_;
  }
  void push_back(const Event& event) { Mutable().push_back(event); }
  void clear() { events_.reset(); }

  // Are they the same array?
  bool SharesWith(const EventList& other) const { return events_ != nullptr && events_ == other.events_; }

 private:
  static const std::vector<Event>& None() {
    static const auto* const kNone = new std::vector<Event>();
    return *kNone;
  }
  const std::vector<Event>& Get() const { return events_ != nullptr ? *events_ : None(); }

  std::shared_ptr<std::vector<Event>> events_;
};

}  // namespace ashlar::trace

#endif  // ASHLAR_ALLOCATOR_TRACE_EVENT_H_
