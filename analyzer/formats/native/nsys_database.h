// Exports of Nsight Systems as SQLite (`nsys profile --cuda-memory-usage=true`, then `nsys export --type sqlite`): the
// allocations and frees of device memory in the table CUDA_GPU_MEMORY_USAGE_EVENTS, as a snapshot whose events are
// those calls (trace::RecordsDeviceCalls), with native call stacks where backtraces were recorded. One process is read,
// that with most bytes; the others are counted in a note. SQLite itself is opened when such a file comes
// (sqlite_library.h). https://docs.nvidia.com/nsight-systems/UserGuide/index.html#sqlite-schema-reference
#ifndef ASHLAR_ANALYZER_FORMATS_NATIVE_NSYS_DATABASE_H_
#define ASHLAR_ANALYZER_FORMATS_NATIVE_NSYS_DATABASE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/formats/read_limits.h"

namespace ashlar::formats {

// Any database of SQLite 3.
bool IsSqlite(absl::string_view bytes);

// InvalidArgument: another database, or an export without memory events; Unavailable: SQLite is not here. Thread-safe.
absl::StatusOr<trace::Snapshot> ReadNsysDatabase(absl::string_view bytes, const ReadLimits& limits = {});

}  // namespace ashlar::formats

#endif  // ASHLAR_ANALYZER_FORMATS_NATIVE_NSYS_DATABASE_H_
