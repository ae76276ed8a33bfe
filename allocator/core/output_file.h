// Makes the library's output files so that no two writers damage one: a recording, which is written bit by bit, and a
// state, which is written at once.
//
//   absl::StatusOr<ClaimedFile> file = ClaimFile("run.ashlar", /*overwrites=*/false);   // nobody else writes it now
//   absl::Status status = ReplaceFile("state.ashlar", {header, payload});               // the old content or the new
//   OutputPath("rank_%p.ashlar")                                                        // "rank_4711.ashlar"
//
// A claim is an advisory lock (flock) on the file's inode, whatever name leads there. It ends when its last descriptor
// is closed, so also when the process is killed. On a file system without locks only files that are new are safe
// from another writer. Devices and pipes are nobody's: they are written as they are.
//
// Errors are one line that begins with the path. Threads: any.
#ifndef ASHLAR_ALLOCATOR_CORE_OUTPUT_FILE_H_
#define ASHLAR_ALLOCATOR_CORE_OUTPUT_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace ashlar::core {

// `pattern` with %p as the number of the process, %h as the name of the host and %% as a percent sign, so that one
// setting names a file for each of many ranks. Any other % stands for itself.
std::string OutputPath(absl::string_view pattern);

struct ClaimedFile {
  int descriptor = -1;  // for the caller to close
  bool is_new = false;  // it was not there before
};

// An empty file that this call has made, or has emptied where `overwrites` allows it; one that is there and empty is
// as good. AlreadyExists: there is something in it. FailedPrecondition: somebody has claimed it.
absl::StatusOr<ClaimedFile> ClaimFile(const std::string& path, bool overwrites);

// The whole content of the file, by way of a temporary file beside it: under that name there is the old content or the
// new one at every moment, never a part. FailedPrecondition: somebody has claimed the file.
absl::Status ReplaceFile(const std::string& path, absl::Span<const absl::string_view> parts);

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_OUTPUT_FILE_H_
