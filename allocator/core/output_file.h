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
#include "allocator/trace/codec_format.h"

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

// A recording's file on the disk: whole chunks, each written with one call as it comes, so that a process that is
// killed has lost nothing that was handed over. Nobody else writes the file meanwhile (output_file.h). Not thread-safe.
class ChunkFile {
 public:
  // Anew, with its header; a file that is there already is refused unless `overwrites`. Look at status() afterwards.
  ChunkFile(std::string path, bool overwrites);
  ~ChunkFile();
  ChunkFile(const ChunkFile&) = delete;
  ChunkFile& operator=(const ChunkFile&) = delete;

  // After an error nothing more is written. A process made by fork writes nothing: the file is its parent's.
  void Write(absl::string_view payload);
  // Closes the file; the first error of all, if there was one. The message names the file.
  absl::Status Close();
  // Takes the file away again if it was not there before.
  void Discard();
  // In a child that fork made: lets the parent's file go, and with it its lock.
  void Abandon();

  const absl::Status& status() const { return status_; }
  const std::string& path() const { return path_; }

 private:
  bool IsMine() const;
  void WriteOut(absl::string_view head, absl::string_view body);

  std::string path_;
  int file_ = -1;
  int process_ = 0;
  bool is_new_ = false;
  trace::codec::ChunkBytes chunks_;
  absl::Status status_;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_OUTPUT_FILE_H_
