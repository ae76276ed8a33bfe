#include "analyzer/replay/recorded_moment.h"

#include "allocator/core/inspect.h"

namespace ashlar::replay {

RecordedMoment MomentOf(const core::CachingAllocator& allocator, int device) {
  RecordedMoment out;
  const core::Inspection inspection(allocator);
  inspection.WhileStill([&] {
    out = {inspection.StartNow(), inspection.PoolsNow(), inspection.LimitNow(), inspection.ReservationsNow()};
  });
  out.start.has_segments = true;
  for (trace::SnapshotSegment& segment : out.start.segments) segment.device = device;
  return out;
}

}  // namespace ashlar::replay
