// Adds events up for `ashlar watch`: sums, and what came in each second of the last minute.
//
//   WatchTally tally(start_segments);
//   for (const trace::Event& event : events) tally.Add(event);
//   tally.PutInto(answer);
//
// Times are the recording's. An event whose time lies before the last one's counts with that. Not thread-safe.
#ifndef ASHLAR_ANALYZER_ANSWERS_WATCH_TALLY_H_
#define ASHLAR_ANALYZER_ANSWERS_WATCH_TALLY_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "allocator/trace/event.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/answers/watch.h"

namespace ashlar::answers {

class WatchTally {
 public:
  WatchTally() = default;
  explicit WatchTally(const std::vector<trace::SnapshotSegment>& start);
  void Add(const trace::Event& event);
  void PutInto(WatchAnswer& answer) const;

 private:
  WatchSecond& SecondOf(const trace::Event& event);
  WatchRates Rates() const;

  std::uint64_t allocated_bytes_ = 0;
  std::uint64_t peak_bytes_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t ooms_ = 0;
  std::optional<std::int64_t> begin_us_, last_us_;
  std::deque<WatchSecond> seconds_;  // those with events, of the last minute
  WatchSecond timeless_;
};

}  // namespace ashlar::answers

#endif  // ASHLAR_ANALYZER_ANSWERS_WATCH_TALLY_H_
