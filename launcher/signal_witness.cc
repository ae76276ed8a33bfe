#include "launcher/signal_witness.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace ashlar::cli {
namespace {

constexpr int kMostMilliseconds = 1000;  // that an answer takes

// The signal that waits for the calling process, which blocks it; it waits no longer then.
std::optional<siginfo_t> TakeWaiting(int signal) {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  const timespec at_once{};
  siginfo_t info{};
  if (sigtimedwait(&one, &info, &at_once) != signal) return std::nullopt;
  return info;
}

void CloseFilesFrom(int first) {
#ifdef SYS_close_range
  if (syscall(SYS_close_range, static_cast<unsigned>(first), ~0U, 0U) == 0) return;
#endif
  rlimit most{};
  getrlimit(RLIMIT_NOFILE, &most);
  for (int file = first; static_cast<rlim_t>(file) < most.rlim_cur; ++file) close(file);
}

// Who looks for our name and arguments, to send a signal there, means this process alone.
void HideName() {
  prctl(PR_SET_NAME, "signal-witness");
  std::ifstream file("/proc/self/stat");
  const std::string stat{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return;
  const std::vector<absl::string_view> fields = absl::StrSplit(absl::string_view(stat).substr(name_end + 2), ' ');
  constexpr std::size_t kArgumentsBegin = 48 - 3, kArgumentsEnd = 49 - 3;  // proc(5); the third is the first here
  std::uintptr_t begin = 0, end = 0;
  if (fields.size() <= kArgumentsEnd || !absl::SimpleAtoi(fields[kArgumentsBegin], &begin) ||
      !absl::SimpleAtoi(fields[kArgumentsEnd], &end) || begin == 0 || end < begin) {
    return;
  }
  std::memset(reinterpret_cast<void*>(begin), 0, end - begin);
}

[[noreturn]] void Watch(int questions) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  dup2(questions, 0);
  CloseFilesFrom(1);
  HideName();
  SignalThatCame came;
  while (recv(0, &came, sizeof(came), 0) == sizeof(came)) {  // until nobody is there to ask
    const std::optional<siginfo_t> waiting = TakeWaiting(came.signal);
    const bool saw = waiting.has_value() && came.code == waiting->si_code && came.sender == waiting->si_pid;
    send(0, &saw, sizeof(saw), MSG_NOSIGNAL);
  }
  _exit(0);
}

}  // namespace

SignalWitness::SignalWitness() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return;
  process_ = fork();
  if (process_ == 0) Watch(ends[1]);
  close(ends[1]);
  questions_ = ends[0];
}

std::optional<bool> SignalWitness::Saw(const SignalThatCame& came) const {
  LetGroupSignalsArrive();
  bool saw = false;
  pollfd ready{questions_, POLLIN, 0};
  if (send(questions_, &came, sizeof(came), MSG_NOSIGNAL) != sizeof(came) || poll(&ready, 1, kMostMilliseconds) != 1 ||
      recv(questions_, &saw, sizeof(saw), 0) != sizeof(saw)) {
    return std::nullopt;
  }
  if (saw) TakeWaiting(came.signal);  // it came to both again before this was asked
  return saw;
}

void SignalWitness::End() {
  if (process_ > 0) {
    kill(process_, SIGKILL);
    while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (questions_ >= 0) close(questions_);
  process_ = questions_ = -1;
}

void LetGroupSignalsArrive() { setpgid(0, getpgrp()); }

}  // namespace ashlar::cli
