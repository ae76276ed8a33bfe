// Reads a recording while it is being written: what is whole so far, and then what came since. Errors and limits are
// codec.h's.
//
//   RecordingFollower follower;
//   absl::StatusOr<std::size_t> taken = follower.Take(bytes);    // of these so many; the rest is not whole yet
//   std::vector<SnapshotSegment> state = follower.start();       // before the first event
//   absl::Status status = StateAfter(state, follower.TakeEvents(), state_after);
//
// Sizes are bytes. Not thread-safe.
#ifndef ASHLAR_ALLOCATOR_TRACE_RECORDING_FOLLOWER_H_
#define ASHLAR_ALLOCATOR_TRACE_RECORDING_FOLLOWER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/trace/event.h"
#include "allocator/trace/snapshot.h"

namespace ashlar::trace {

class RecordingFollower {
 public:
  RecordingFollower();
  ~RecordingFollower();
  RecordingFollower(const RecordingFollower&) = delete;
  RecordingFollower& operator=(const RecordingFollower&) = delete;

  // `bytes` begin where those that were taken before end. The first error stays.
  absl::StatusOr<std::size_t> Take(absl::string_view bytes);
  // Those since the last call, by device.
  std::vector<EventList> TakeEvents();

  // Nothing follows: the recording has its end.
  bool has_ended() const;
  // It begins with a state and goes on from there; else it is a ring's, which ends in one, and is whole.
  bool begins_with_state() const;
  // That state, by device and address.
  std::vector<SnapshotSegment> start() const;
  // Of the device; nullopt: not known.
  std::optional<std::uint64_t> device_total_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ashlar::trace

#endif  // ASHLAR_ALLOCATOR_TRACE_RECORDING_FOLLOWER_H_
