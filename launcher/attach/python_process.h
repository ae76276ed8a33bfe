// A process that runs Python, and was not started under us: a line of Python is queued in it, which its main thread
// runs between two of its own instructions, with the GIL, as one of Python's pending calls. Where threads cannot be
// held (HeldThread: processors other than x86-64) by sys.remote_exec, from Python 3.14 on, where the process sees the
// files that this one sees: it reaches no thread that waits for a lock, and prints an error where its file is gone.
//
//   absl::StatusOr<PythonProcess> process = PythonProcess::Find(pid);
//   process->Queue("import gc\ngc.collect()\n", file_with_the_same);
//   ...
//   process->LetGo(has_run);
//
// For pending calls the process is held for some milliseconds for each of the three, by a child of this process that no
// signal reaches: to end this program does it no harm. Thread rule: before any thread of ours.
#ifndef ASHLAR_LAUNCHER_ATTACH_PYTHON_PROCESS_H_
#define ASHLAR_LAUNCHER_ATTACH_PYTHON_PROCESS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ashlar::cli {

class PythonProcess {
 public:
  // The process, or the first below it that has PyTorch with CUDA loaded: a launcher is taken for its program.
  // FailedPrecondition where there is none; PermissionDenied, and what would change it.
  static absl::StatusOr<PythonProcess> Find(std::int64_t pid);

  std::int64_t pid() const { return pid_; }
  bool IsAlive() const;

  // What the line raises must not leave it. `file`, as the process sees it, has the line too. One line at a time.
  absl::Status Queue(const std::string& line, const std::string& file);
  // Whether the process has yet to read the file, which must stay then.
  bool WillReadFile(bool has_run) const { return is_remote_ && !has_run; }
  // Where the main thread waits for a lock of Python's own, the wait looks up, sees what is queued, and goes on.
  void Nudge() const;
  // Gives back what Queue took. Before the line has run it stays, as it is still to be read: a page of memory.
  void LetGo(bool has_run);

 private:
  struct Functions {
    std::uint64_t add_pending_call = 0, run_simple_string = 0, map = 0, unmap = 0;
  };

  bool HasTakenRemotely(const std::string& file) const;
  absl::Status QueueAsPendingCall(const std::string& line);

  PythonProcess(std::int64_t pid, const Functions& functions) : pid_(pid), functions_(functions) {}
  static absl::StatusOr<Functions> FunctionsOf(std::int64_t pid);

  std::int64_t pid_;
  Functions functions_;
  std::uint64_t page_ = 0;  // with the line
  std::uint64_t page_bytes_ = 0;
  bool is_remote_ = false;
};

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_ATTACH_PYTHON_PROCESS_H_
