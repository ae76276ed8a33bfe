// The allocator's state as a file: when asked for, and when a request has failed.
#include <string>
#include <utility>

#include "allocator/core/caching_allocator.h"
#include "allocator/core/oom_dump.h"
#include "allocator/core/output_file.h"
#include "allocator/core/recorded_head.h"
#include "allocator/core/world.h"
#include "allocator/trace/codec.h"

namespace ashlar::core {

trace::Snapshot CachingAllocator::StateNow() const {
  trace::Snapshot state = RecordedHeadOf(*this, 0);
  state.segments = SegmentsNow();
  state.recording->reservations = ReservationsNow();
  state.recording->is_complete = true;
  if (sink_ != nullptr) sink_->NameBlocks(state);
  return state;
}

// The bytes are made and written when the allocator has gone on.
absl::Status CachingAllocator::DumpSnapshot(const std::string& path) const {
  trace::Snapshot state;
  WhileStill([&] { state = StateNow(); });
  return ReplaceFile(OutputPath(path), {trace::Encode(state)});
}

// What a ring kept has the request as its last event; but one that was rejected is no event.
absl::Status CachingAllocator::WriteFailure(const FailedAllocation& failed, const std::string& path) const {
  if (sink_ != nullptr && !failed.is_rejected) {
    if (const auto kept = sink_->WriteKept(path); kept.has_value()) return *kept;
  }
  return WriteFailedState(StateNow(), failed, path);
}

}  // namespace ashlar::core
