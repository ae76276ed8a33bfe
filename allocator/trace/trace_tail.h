// Of a device's events those that may be held, the last: as their list grows the oldest are dropped, and summed.
//
//   TraceTail tail(/*max_events=*/20'000'000);
//   events.push_back(...);                          // again and again
//   if (const std::size_t count = tail.TooMany(events); count > 0) tail.Drop(count, events);
//   ...
//   tail.Drop(tail.Rest(events), events);           // at the end
//   tail.Describe(events, device, snapshot);        // its segments are there
//
//   dropped and summed |.........................|
//                      held at the end           |.................|  max_events, and up to the request's begin
//
// A list is cut between two requests. Pure values, not thread-safe.
#ifndef ASHLAR_ALLOCATOR_TRACE_TRACE_TAIL_H_
#define ASHLAR_ALLOCATOR_TRACE_TRACE_TAIL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "allocator/trace/event.h"
#include "allocator/trace/note.h"
#include "allocator/trace/snapshot.h"
#include "allocator/trace/trace_sums.h"

namespace ashlar::trace {

// Back to where the request that lies across `at` begins: its segments come before its own event, and a free is asked
// for before it is done.
std::size_t BetweenRequests(absl::Span<const Event> events, std::size_t at);

// Says in the snapshot that of a device's trace the last `held` events are there. `sums`: of all. nullopt: those are
// all; else a note that says what the others came to.
std::optional<Note> DescribeWindow(const TraceSums& sums, std::uint64_t held, std::size_t device,
                                   std::uint64_t max_events, Snapshot& snapshot);

class TraceTail {
 public:
  // 0: all are held.
  explicit TraceTail(std::uint64_t max_events) : max_events_(max_events) {}

  // How many of the oldest must go: 0 until there are a quarter too many, as dropping moves what stays.
  std::size_t TooMany(absl::Span<const Event> events) const;
  // The same where no more follow.
  std::size_t Rest(absl::Span<const Event> events) const;
  void Drop(std::size_t count, std::vector<Event>& events);
  // In the snapshot's windows and notes, where any were dropped.
  void Describe(absl::Span<const Event> events, std::size_t device, Snapshot& snapshot) const;

  std::uint64_t dropped() const { return sums_.events(); }

 private:
  std::uint64_t max_events_;
  TraceSums sums_;  // of those that were dropped
};

}  // namespace ashlar::trace

#endif  // ASHLAR_ALLOCATOR_TRACE_TRACE_TAIL_H_
