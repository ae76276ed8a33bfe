#include "analyzer/readers/snapshot.h"

#include "allocator/trace/codec.h"
#include "analyzer/readers/native/native_log.h"
#include "analyzer/readers/torch/torch_snapshot.h"

namespace ashlar::readers {

absl::StatusOr<trace::Snapshot> ReadSnapshot(absl::string_view bytes) {
  if (IsNativeLog(bytes)) return ReadNativeLog(bytes);
  return trace::IsRecording(bytes) ? trace::Decode(bytes) : ReadTorchSnapshot(bytes);
}

}  // namespace ashlar::readers
