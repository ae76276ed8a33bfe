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

namespace ashlar::trace {

// What a trace adds up to, event by event, without holding it: how high requested and reserved memory went, and the
// requests that failed. A trace may begin anywhere: sums are from its beginning, and the state at its end, which a
// snapshot has, tells what they began at.
//
//   TraceSums sums;
//   for (...) sums.Add(event);
//   sums.RequestedPeak(bytes_requested_at_the_end)   // of all that lived at once
class TraceSums {
 public:
  struct Peak {
    std::uint64_t bytes = 0;
    std::uint64_t event = 0;  // counted from 0; the first that reached it
  };

  void Add(const Event& event) {
    const auto bytes = static_cast<std::int64_t>(event.size_bytes);
    switch (event.action) {
      case Action::kAlloc:
        return requested_.Add(bytes, events_++);
      case Action::kFreeRequested:
        return requested_.Add(-bytes, events_++);
      case Action::kSegmentAlloc:
      case Action::kSegmentMap:
        return reserved_.Add(bytes, events_++);
      case Action::kSegmentFree:
      case Action::kSegmentUnmap:
        return reserved_.Add(-bytes, events_++);
      case Action::kOom:
        ++failures_;
        last_failure_ = events_++;
        return;
      default:
        ++events_;
    }
  }

  std::uint64_t events() const { return events_; }
  std::uint64_t failures() const { return failures_; }
  std::uint64_t last_failure() const { return last_failure_; }
  Peak RequestedPeak(std::uint64_t bytes_at_end) const { return requested_.PeakWith(bytes_at_end); }
  Peak ReservedPeak(std::uint64_t bytes_at_end) const { return reserved_.PeakWith(bytes_at_end); }

 private:
  struct Sum {
    std::int64_t now = 0;
    std::int64_t most = 0;
    std::uint64_t event = 0;

    // Sizes of damaged files may be anything: sums wrap.
    void Add(std::int64_t bytes, std::uint64_t at) {
      now = static_cast<std::int64_t>(static_cast<std::uint64_t>(now) + static_cast<std::uint64_t>(bytes));
      if (now > most) most = now, event = at;
    }
    Peak PeakWith(std::uint64_t bytes_at_end) const {
      return {bytes_at_end - static_cast<std::uint64_t>(now) + static_cast<std::uint64_t>(most), event};
    }
  };

  Sum requested_, reserved_;
  std::uint64_t events_ = 0;
  std::uint64_t failures_ = 0;
  std::uint64_t last_failure_ = 0;
};

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
