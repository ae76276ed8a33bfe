// Our own recordings as bytes: codec_format.h says how they lie. Whatever happened to the bytes is noticed: a flipped
// bit by the checksum of its chunk, a cut by the missing end. What is whole is given back, and what is not is named.
//
//   absl::StatusOr<Snapshot> recording = Decode(bytes);
//   recording->notes   "damaged: chunk 17 (byte 1,114,136) does not have its checksum; the 16 before it are shown"
//
// Every number in the bytes is checked before it is used: no input makes Decode crash, or take more memory than a small
// multiple of its size.
#ifndef ASHLAR_ALLOCATOR_TRACE_CODEC_H_
#define ASHLAR_ALLOCATOR_TRACE_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/base/byte_sink.h"
#include "allocator/trace/event.h"
#include "allocator/trace/snapshot.h"

namespace ashlar::trace {

// Whether the bytes begin as a recording does.
bool IsRecording(absl::string_view bytes);

struct DecodeLimits {
  // Of each device the last events, as many as this and up to the begin of a request more; those before are summed
  // (TraceWindow), and of them only what the state at the end needs is kept. 0: all. Pinned memory of the host is held
  // whole.
  std::uint64_t max_events = 0;
  // Told which bytes were read; nullptr: nobody is.
  void (*is_read)(absl::string_view bytes) = nullptr;
};

// InvalidArgument: no recording, or of a version that this one does not know. DataLoss: nothing whole is left.
// A recording without its end (the process was killed, the file cut) is no error: Snapshot::recording->is_complete is
// false, a note says where it ends, and the final segments are worked out from the first ones (state_after.h).
absl::StatusOr<Snapshot> Decode(absl::string_view bytes, const DecodeLimits& limits = {});

// A recording that decodes to `snapshot`, but for its notes and where its events lay in their file.
std::string Encode(const Snapshot& snapshot);
void Encode(const Snapshot& snapshot, ByteSink& out);  // chunk by chunk

// Reads a recording while it is being written: what is whole so far, and then what came since. Errors and limits are
// codec.h's.
//
//   RecordingFollower follower;
//   absl::StatusOr<std::size_t> taken = follower.Take(bytes);    // of these so many; the rest is not whole yet
//   std::vector<SnapshotSegment> state = follower.start();       // before the first event
//   absl::Status status = StateAfter(state, follower.TakeEvents(), state_after);
//
// Sizes are bytes. Not thread-safe.
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

#endif  // ASHLAR_ALLOCATOR_TRACE_CODEC_H_
