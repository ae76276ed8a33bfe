// What a trace adds up to, event by event, without holding it: how high requested and reserved memory went, and the
// requests that failed. A trace may begin anywhere: sums are from its beginning, and the state at its end, which a
// snapshot has, tells what they began at.
//
//   TraceSums sums;
//   for (...) sums.Add(event);
//   sums.RequestedPeak(bytes_requested_at_the_end)   // of all that lived at once
#ifndef ASHLAR_ALLOCATOR_TRACE_TRACE_SUMS_H_
#define ASHLAR_ALLOCATOR_TRACE_TRACE_SUMS_H_

#include <cstdint>

#include "allocator/trace/event.h"

namespace ashlar::trace {

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

}  // namespace ashlar::trace

#endif  // ASHLAR_ALLOCATOR_TRACE_TRACE_SUMS_H_
