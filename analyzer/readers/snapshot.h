// Reads any file that holds a snapshot: PyTorch's pickle, a recording of our own, or a log of a native program's calls.
//
//   absl::StatusOr<trace::Snapshot> snapshot = ReadSnapshot(bytes);
#ifndef ASHLAR_ANALYZER_READERS_SNAPSHOT_H_
#define ASHLAR_ANALYZER_READERS_SNAPSHOT_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/trace/snapshot.h"

namespace ashlar::readers {

absl::StatusOr<trace::Snapshot> ReadSnapshot(absl::string_view bytes);

}  // namespace ashlar::readers

#endif  // ASHLAR_ANALYZER_READERS_SNAPSHOT_H_
