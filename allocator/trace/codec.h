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

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/base/byte_sink.h"
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

}  // namespace ashlar::trace

#endif  // ASHLAR_ALLOCATOR_TRACE_CODEC_H_
