#include "launcher/attach/held_thread.h"

#include <elf.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "launcher/attach/loaded_functions.h"

namespace ashlar::cli {

#if defined(__x86_64__)

namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kHoldLimit(2);
constexpr std::chrono::seconds kMostOfACall(60);
constexpr std::size_t kVectorStateBytes = 32768;  // more than any x86-64 processor has
constexpr std::uint64_t kRedZoneBytes = 128;      // below the stack's top, a function's own (System V ABI, 3.2.2)
constexpr std::uint64_t kFrameBytes = 512;
constexpr std::uint64_t kReturnsTo = 0;  // no code is there: the thread stops when it comes back
constexpr int kStopEvent = 128;          // PTRACE_EVENT_STOP
// What the kernel leaves in rax while a system call waits that is begun again (include/linux/errno.h).
constexpr std::int64_t kRestartFirst = -516, kRestartLast = -512;

struct Stop {
  bool has_ended = false;
  int signal = 0;
  int event = 0;
};

// nullopt: no stop before the deadline.
std::optional<Stop> WaitForStop(pid_t thread, steady_clock::time_point deadline) {
  while (true) {
    int status = 0;
    const pid_t got = waitpid(thread, &status, __WALL | WNOHANG);
    if (got == thread) {
      if (!WIFSTOPPED(status)) return Stop{.has_ended = true};
      return Stop{.signal = WSTOPSIG(status), .event = status >> 16};
    }
    if (got < 0 && errno != EINTR) return Stop{.has_ended = true};
    if (steady_clock::now() >= deadline) return std::nullopt;
    const timespec pause{.tv_sec = 0, .tv_nsec = 200'000};
    nanosleep(&pause, nullptr);
  }
}

// Signals that arrive on the way are the program's.
absl::Status Interrupt(pid_t thread) {
  if (ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0) {
    return absl::NotFoundError(absl::StrCat("process ", thread, " has ended"));
  }
  const auto deadline = steady_clock::now() + kHoldLimit;
  while (true) {
    const std::optional<Stop> stop = WaitForStop(thread, deadline);
    if (!stop.has_value()) {
      return absl::DeadlineExceededError(absl::StrCat("process ", thread, " cannot be stopped: it waits for a device"));
    }
    if (stop->has_ended) return absl::NotFoundError(absl::StrCat("process ", thread, " has ended"));
    if (stop->event == kStopEvent && stop->signal == SIGTRAP) return absl::OkStatus();
    if (stop->event == kStopEvent) {
      return absl::FailedPreconditionError(
          absl::StrCat("process ", thread, " is stopped: let it go on first, by kill -CONT ", thread));
    }
    ptrace(PTRACE_CONT, thread, nullptr, stop->event == 0 ? stop->signal : 0);
  }
}

bool IsInLockWait(const user_regs_struct& registers) {
  const auto result = static_cast<std::int64_t>(registers.rax);
  return registers.orig_rax == SYS_futex && result >= kRestartFirst && result <= kRestartLast;
}

}  // namespace

absl::StatusOr<std::unique_ptr<HeldThread>> HeldThread::Hold(pid_t thread) {
  if (ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) {
    if (errno == ESRCH) return absl::NotFoundError(absl::StrCat("there is no process ", thread));
    return NotAllowed(thread);
  }
  std::unique_ptr<HeldThread> out(new HeldThread(thread));
  if (absl::Status status = Interrupt(thread); !status.ok()) return status;
  if (absl::Status status = out->Save(); !status.ok()) return status;
  return out;
}

HeldThread::~HeldThread() {
  if (is_saved_) static_cast<void>(Restore());
  ptrace(PTRACE_DETACH, thread_, nullptr, nullptr);
}

absl::Status HeldThread::Save() {
  vector_state_.resize(kVectorStateBytes);
  iovec vectors{vector_state_.data(), vector_state_.size()};
  if (ptrace(PTRACE_GETREGS, thread_, nullptr, &registers_) != 0 ||
      ptrace(PTRACE_GETREGSET, thread_, NT_X86_XSTATE, &vectors) != 0 ||
      ptrace(PTRACE_GETSIGMASK, thread_, sizeof(signal_mask_), &signal_mask_) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("process ", thread_, ": its registers cannot be read"));
  }
  vector_state_.resize(vectors.iov_len);
  is_saved_ = true;
  return absl::OkStatus();
}

absl::Status HeldThread::Restore() {
  iovec vectors{vector_state_.data(), vector_state_.size()};
  if (ptrace(PTRACE_SETREGSET, thread_, NT_X86_XSTATE, &vectors) != 0 ||
      ptrace(PTRACE_SETREGS, thread_, nullptr, &registers_) != 0 ||
      ptrace(PTRACE_SETSIGMASK, thread_, sizeof(signal_mask_), &signal_mask_) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("process ", thread_, ": its registers cannot be set"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::uint64_t> HeldThread::Call(std::uint64_t function, const std::array<std::uint64_t, 6>& arguments,
                                               std::chrono::milliseconds limit) {
  user_regs_struct call = registers_;
  call.rsp = ((registers_.rsp - kRedZoneBytes - kFrameBytes) & ~std::uint64_t{15}) - sizeof(kReturnsTo);
  call.rip = function;
  call.rax = 0;
  call.orig_rax = ~0ULL;     // no system call is begun again in its place
  call.eflags &= ~0x500ULL;  // direction, and single steps
  constexpr std::array<unsigned long long user_regs_struct::*, 6> kArgumentRegisters = {
      // NOLINT(google-runtime-int): theirs
      &user_regs_struct::rdi, &user_regs_struct::rsi, &user_regs_struct::rdx,
      &user_regs_struct::rcx, &user_regs_struct::r8,  &user_regs_struct::r9};
  for (std::size_t i = 0; i < kArgumentRegisters.size(); ++i) call.*kArgumentRegisters[i] = arguments[i];
  const absl::string_view returns_to(reinterpret_cast<const char*>(&kReturnsTo), sizeof(kReturnsTo));
  if (absl::Status status = Write(call.rsp, returns_to); !status.ok()) return status;
  // Only what the call itself raises: a signal of the program waits.
  std::uint64_t mask = ~std::uint64_t{0};
  for (const int own : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP}) mask &= ~(std::uint64_t{1} << (own - 1));
  if (ptrace(PTRACE_SETSIGMASK, thread_, sizeof(mask), &mask) != 0 ||
      ptrace(PTRACE_SETREGS, thread_, nullptr, &call) != 0 || ptrace(PTRACE_CONT, thread_, nullptr, nullptr) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("process ", thread_, " cannot be asked"));
  }
  const absl::StatusOr<user_regs_struct> after = WaitForReturn(limit);
  if (absl::IsNotFound(after.status())) {
    is_saved_ = false;
    return after.status();
  }
  if (absl::Status status = Restore(); !status.ok()) return status;
  if (!after.ok()) return after.status();
  if (after->rip != kReturnsTo) return absl::AbortedError(absl::StrCat("process ", thread_, " could not be asked"));
  return after->rax;
}

absl::StatusOr<user_regs_struct> HeldThread::WaitForReturn(std::chrono::milliseconds limit) const {
  const auto begin = steady_clock::now();
  user_regs_struct registers{};
  for (auto deadline = begin + limit; true; deadline += limit) {
    const std::optional<Stop> stop = WaitForStop(thread_, deadline);
    if (stop.has_value() && stop->has_ended)
      return absl::NotFoundError(absl::StrCat("process ", thread_, " has ended"));
    if (!stop.has_value()) {
      if (absl::Status status = Interrupt(thread_); !status.ok()) return status;
    }
    ptrace(PTRACE_GETREGS, thread_, nullptr, &registers);
    if (stop.has_value() && stop->event == 0) return registers;
    // A call that waits for a lock has taken none: it can be given up. One that is only slow cannot.
    if (!stop.has_value() && (IsInLockWait(registers) || steady_clock::now() - begin > kMostOfACall)) {
      return absl::DeadlineExceededError(absl::StrCat("process ", thread_, " is in a call that lasts"));
    }
    ptrace(PTRACE_CONT, thread_, nullptr, nullptr);
  }
}

absl::Status HeldThread::Write(std::uint64_t address, absl::string_view bytes) const {
  const iovec from{const_cast<char*>(bytes.data()), bytes.size()};
  const iovec to{reinterpret_cast<void*>(address), bytes.size()};
  if (process_vm_writev(thread_, &from, 1, &to, 1, 0) == static_cast<ssize_t>(bytes.size())) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("process ", thread_, ": its memory cannot be written"));
}

std::vector<std::uint64_t> HeldThread::Stack(std::size_t words) const {
  std::vector<std::uint64_t> out(words);
  const iovec to{out.data(), words * sizeof(std::uint64_t)};
  const iovec from{reinterpret_cast<void*>(registers_.rsp), words * sizeof(std::uint64_t)};
  const ssize_t got = process_vm_readv(thread_, &to, 1, &from, 1, 0);
  out.resize(got < 0 ? 0 : static_cast<std::size_t>(got) / sizeof(std::uint64_t));
  return out;
}

bool HeldThread::WaitsForLock() const { return IsInLockWait(registers_); }

void HeldThread::InterruptWait() {
  registers_.rax = static_cast<std::uint64_t>(-EINTR);
  registers_.orig_rax = ~0ULL;
}

#else

absl::StatusOr<std::unique_ptr<HeldThread>> HeldThread::Hold(pid_t) {
  return absl::UnimplementedError(
      "a running process is asked on x86-64; on other processors only one of Python 3.14 or later");
}
HeldThread::~HeldThread() = default;
absl::StatusOr<std::uint64_t> HeldThread::Call(std::uint64_t, const std::array<std::uint64_t, 6>&,
                                               std::chrono::milliseconds) {
  return absl::UnimplementedError("");
}
absl::Status HeldThread::Write(std::uint64_t, absl::string_view) const { return absl::UnimplementedError(""); }
std::vector<std::uint64_t> HeldThread::Stack(std::size_t) const { return {}; }
bool HeldThread::WaitsForLock() const { return false; }
void HeldThread::InterruptWait() {}
absl::Status HeldThread::Save() { return absl::UnimplementedError(""); }
absl::Status HeldThread::Restore() { return absl::UnimplementedError(""); }

#endif

}  // namespace ashlar::cli
