// Reads what libashlar_record.so wrote of a native program (docs/guide/record.md, "The log"): its calls on device
// memory, as a snapshot whose events are those calls (trace::RecordsDeviceCalls).
//
//   absl::StatusOr<trace::Snapshot> snapshot = ReadNativeLog(bytes);
//
// A log that was cut, as by a process that was killed, gives all that is whole in it, and a note.
#ifndef ASHLAR_ANALYZER_READERS_NATIVE_NATIVE_LOG_H_
#define ASHLAR_ANALYZER_READERS_NATIVE_NATIVE_LOG_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/readers/read_limits.h"

namespace ashlar::readers {

bool IsNativeLog(absl::string_view bytes);

// InvalidArgument, in one line: no such log, or of a version that this one does not know.
absl::StatusOr<trace::Snapshot> ReadNativeLog(absl::string_view bytes, const ReadLimits& limits = {});

}  // namespace ashlar::readers

#endif  // ASHLAR_ANALYZER_READERS_NATIVE_NATIVE_LOG_H_
