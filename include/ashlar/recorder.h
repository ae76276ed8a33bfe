// A recorder writes down an allocator's decisions and its device's answers, into a file or a bounded ring. It is cheap
// enough to leave on.
//
//   absl::StatusOr<std::unique_ptr<ashlar::Recorder>> file = ashlar::Recorder::ToFile(allocator, "run_%p.ashlar");
//   absl::StatusOr<std::unique_ptr<ashlar::Recorder>> ring = ashlar::Recorder::Ring(allocator);
//   ...
//   absl::Status status = (*ring)->Write("last.ashlar");   // ring: the last events, any number of times
//   absl::Status status = (*file)->Finish();               // file: its end; the destructor does it too
//
// `ashlar explain`, `replay`, `check`, `diff` and `convert` read the files (docs/library/recorder.md). A replay of them
// comes to the same decisions.
//
// A process that is killed loses what was being filled: a chunk, and half of one for each thread that allocates, not
// older than a second while events come. The recording ends, and status() says why, when the file cannot be written any
// more, memory runs out, or stack_of throws; the allocator goes on. In a child that fork makes, a file's recorder has
// ended; a ring goes on.
//
// Threads: any thread may call any function. Threads that the cache serves are recorded side by side; only with
// stack_of they take turns. The allocator outlives the recorder.
#ifndef ASHLAR_RECORDER_H_
#define ASHLAR_RECORDER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ashlar/allocator.h"
#include "ashlar/export.h"
#include "ashlar/scope.h"
#include "ashlar/units.h"

namespace ashlar {

struct StackFrame {
  std::string file;
  std::string function;
  std::int64_t line = 0;
};

struct RecorderOptions {
  std::uint64_t ring_bytes = 64 * kMiB;  // of a ring: events up to here; stacks and names are kept besides
  std::size_t chunk_bytes = 64 * kKiB;   // of memory, at most 256 MiB; and half of it for each thread that allocates
  int device = 0;                        // the number that the recording calls it by
  // The call stack of a decision, innermost first; asked on the thread that caused it, under the allocator's lock: it
  // must not use the allocator or open a scope, and be quick. What it throws ends the recording. Nothing: the open
  // scopes of the thread (scope.h).
  std::function<std::vector<StackFrame>()> stack_of = {};
  bool overwrites = false;  // whether a file that is there already may be emptied
};

class ASHLAR_EXPORT Recorder {
 public:
  // `path` may have %p for the number of the process and %h for the host. Errors name the file. kFailedPrecondition:
  // the allocator has a recorder already, or another recorder is writing the file, in this process or another;
  // kAlreadyExists: the file is there and not empty, and the options do not say that it may be overwritten;
  // kInvalidArgument: chunk_bytes is too large.
  static absl::StatusOr<std::unique_ptr<Recorder>> ToFile(Allocator& allocator, const std::string& path,
                                                          const RecorderOptions& options = {});
  static absl::StatusOr<std::unique_ptr<Recorder>> Ring(Allocator& allocator, const RecorderOptions& options = {});
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Of a ring: what it holds, as a whole recording. The file has its old content or the new one, never a part.
  // kFailedPrecondition for a recorder that has a file, and for a file that one is writing.
  absl::Status Write(const std::string& path);
  // The same bytes, which `ashlar explain` reads from a file.
  absl::StatusOr<std::string> Bytes();
  // Of a file: everything so far is in it afterwards.
  absl::Status Flush();
  // Records no more; a file gets its end. The first error of all.
  absl::Status Finish();

  // Why the recording ended early: the first error of the file, or what was thrown while an event was recorded.
  absl::Status status() const;
  std::uint64_t event_count() const;  // recorded so far, those that a ring has dropped included
  std::string path() const;           // of the file, %p and %h replaced; empty for a ring

 private:
  struct Impl;
  explicit Recorder(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ashlar

#endif  // ASHLAR_RECORDER_H_
