// A thread of another process that is held for a moment, calls functions of its own process, and goes on as if nothing
// had been: registers, signals and the system call that it waits in are as before.
//
//   absl::StatusOr<std::unique_ptr<HeldThread>> held = HeldThread::Hold(pid);
//   absl::StatusOr<std::uint64_t> page = (*held)->Call(functions.Find("mmap").value(), {0, 4096, 3, 0x22, ~0ULL, 0});
//   (*held)->Write(*page, text);
//                                            // let go by the destructor
//
// Linux on x86-64, by ptrace(2). What a function calls may wait for a lock that the thread has: a call that does not
// come back is given up, and the thread goes on where it was. A process that dies while it holds a thread in a call
// would take that process with it: hold threads in a child that no signal reaches. Thread rule: one thread of ours,
// from Hold on.
#ifndef ASHLAR_LAUNCHER_ATTACH_HELD_THREAD_H_
#define ASHLAR_LAUNCHER_ATTACH_HELD_THREAD_H_

#include <sys/types.h>
#include <sys/user.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ashlar::cli {

class HeldThread {
 public:
  // PermissionDenied where the system refuses (kernel.yama.ptrace_scope, another user, a debugger that is there
  // already); DeadlineExceeded where the thread cannot be stopped: it waits for a device, or the process is stopped.
  static absl::StatusOr<std::unique_ptr<HeldThread>> Hold(pid_t thread);
  ~HeldThread();
  HeldThread(const HeldThread&) = delete;
  HeldThread& operator=(const HeldThread&) = delete;

  // DeadlineExceeded where it waits for a lock at `limit`; Aborted where the function failed.
  absl::StatusOr<std::uint64_t> Call(std::uint64_t function, const std::array<std::uint64_t, 6>& arguments,
                                     std::chrono::milliseconds limit = std::chrono::seconds(2));
  absl::Status Write(std::uint64_t address, absl::string_view bytes) const;

  // The words from the top of its stack on.
  std::vector<std::uint64_t> Stack(std::size_t words) const;
  // Whether it waits in futex(2), as a lock does.
  bool WaitsForLock() const;
  // That wait ends with EINTR once the thread is let go.
  void InterruptWait();

 private:
  explicit HeldThread(pid_t thread) : thread_(thread) {}
  absl::Status Save();
  absl::Status Restore();
  absl::StatusOr<user_regs_struct> WaitForReturn(std::chrono::milliseconds limit) const;

  pid_t thread_;
  user_regs_struct registers_{};
  std::vector<char> vector_state_;  // of the processor: floating point and vectors
  std::uint64_t signal_mask_ = 0;
  bool is_saved_ = false;
};

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_ATTACH_HELD_THREAD_H_
