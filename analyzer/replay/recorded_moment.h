// An allocator between two requests, as a recorder would write it down: what a recording that begins there says first.
#ifndef ASHLAR_ANALYZER_REPLAY_RECORDED_MOMENT_H_
#define ASHLAR_ANALYZER_REPLAY_RECORDED_MOMENT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "allocator/core/caching_allocator.h"
#include "allocator/trace/fact.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/timeline/window.h"

namespace ashlar::replay {

struct RecordedMoment {
  trace::RecordedStart start;
  std::vector<trace::AnyFact> pools;
  std::optional<std::uint64_t> limit_bytes;
  std::vector<trace::ReservedRange> reservations;
};

RecordedMoment MomentOf(const core::CachingAllocator& allocator, int device);

// The two ends of a window.
struct RecordedMoments {
  timeline::EventWindow window;  // the one that was asked for; an end that lay in a request is moved behind it
  RecordedMoment begin, end;
};

}  // namespace ashlar::replay

#endif  // ASHLAR_ANALYZER_REPLAY_RECORDED_MOMENT_H_
