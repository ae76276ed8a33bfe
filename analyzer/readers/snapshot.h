// Reads any file that holds a snapshot: PyTorch's pickle, a recording of our own, or a log
// of a native program's calls.
#ifndef ASHLAR_ANALYZER_READERS_SNAPSHOT_H_
#define ASHLAR_ANALYZER_READERS_SNAPSHOT_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/readers/sniff.h"

namespace ashlar::readers {

// Whether inputs of this kind are for ReadSnapshot.
bool IsSnapshot(InputKind kind);

absl::StatusOr<trace::Snapshot> ReadSnapshot(absl::string_view bytes);

}  // namespace ashlar::readers

#endif  // ASHLAR_ANALYZER_READERS_SNAPSHOT_H_
