#include "launcher/signal_relay.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "console/memory_end.h"
#include "launcher/signal_witness.h"

namespace ashlar::cli {
namespace {

constexpr int kSignals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGCONT, SIGUSR1, SIGUSR2};

sigset_t PassedOn() {
  sigset_t out;
  sigemptyset(&out);
  for (const int signal : kSignals) sigaddset(&out, signal);
  return out;
}

sigset_t g_mask_before;  // of the thread that made the relay

bool IsIgnored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

struct SignalRelay::State {
  std::mutex mutex;
  SignalWitness witness;
  std::string folder;
  int signals = -1;  // where they are read
  pid_t program = 0;
  ProgramGroup group = ProgramGroup::kOurs;
  bool is_held = false;
  bool is_asked_to_end = false;

  void PassWaiting();
  void Pass(const signalfd_siginfo& info);
  void PassToProgram(int signal, std::optional<bool> is_of_group, bool is_of_kernel) const;
  void PassToNobody(int signal);
};

// With the lock held: the program neither comes nor goes between a signal's arrival and its way on.
void SignalRelay::State::PassWaiting() {
  signalfd_siginfo info{};
  while (read(signals, &info, sizeof(info)) == sizeof(info)) Pass(info);
}

void SignalRelay::State::Pass(const signalfd_siginfo& info) {
  const int signal = static_cast<int>(info.ssi_signo);
  const std::optional<bool> is_of_group =
      witness.Saw({signal, static_cast<int>(info.ssi_code), static_cast<int>(info.ssi_pid)});
  if (program != 0) {
    PassToProgram(signal, is_of_group, info.ssi_code > 0);
  } else {
    PassToNobody(signal);
  }
}

void SignalRelay::State::PassToProgram(int signal, std::optional<bool> is_of_group, bool is_of_kernel) const {
  const bool is_for_all = is_of_group.value_or(is_of_kernel);  // the kernel's are a terminal's, mostly for a group
  if (group == ProgramGroup::kOwn) {
    kill(is_for_all || signal == SIGCONT ? -program : program, signal);
  } else if (!is_for_all) {
    kill(program, signal);
  }
}

void SignalRelay::State::PassToNobody(int signal) {
  if (signal == SIGCONT || IsIgnored(signal)) return;
  if (signal == SIGTSTP) {
    kill(getpid(), SIGSTOP);
  } else if (is_held) {
    is_asked_to_end = true;
  } else {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
    witness.End();
    _exit(128 + signal);
  }
}

SignalRelay::SignalRelay(const std::string& folder) : state_(std::make_shared<State>()) {
  state_->folder = folder;
  const sigset_t passed_on = PassedOn();
  pthread_sigmask(SIG_BLOCK, &passed_on, &g_mask_before);
  state_->signals = signalfd(-1, &passed_on, SFD_CLOEXEC | SFD_NONBLOCK);
  if (state_->signals < 0) {
    pthread_sigmask(SIG_SETMASK, &g_mask_before, nullptr);
    return;
  }
  std::thread([state = state_] {
    for (;;) {
      pollfd ready{state->signals, POLLIN, 0};
      if (poll(&ready, 1, -1) < 0 && errno != EINTR) return;
      const std::lock_guard lock(state->mutex);
      state->PassWaiting();
    }
  }).detach();
}

SignalRelay::~SignalRelay() {
  const std::lock_guard lock(state_->mutex);
  state_->witness.End();
}

pid_t SignalRelay::Fork(ProgramGroup group) {
  const std::lock_guard lock(state_->mutex);  // a signal waits until it is known where it goes
  const pid_t program = fork();
  if (program > 0) {
    if (group == ProgramGroup::kOwn) setpgid(program, program);  // as it does itself: whichever comes first
    state_->program = program;
    state_->group = group;
  }
  return program;
}

void SignalRelay::EndProgram() {
  LetGroupSignalsArrive();
  const std::lock_guard lock(state_->mutex);
  state_->PassWaiting();
  state_->program = 0;
}

void SignalRelay::Hold(bool is_held) {
  const std::lock_guard lock(state_->mutex);
  state_->is_held = is_held;
}

bool SignalRelay::HasBeenAskedToEnd() const {
  const std::lock_guard lock(state_->mutex);
  return state_->is_asked_to_end;
}

void TakeSignals() {
  sigprocmask(SIG_SETMASK, &g_mask_before, nullptr);
  EndWhereFilesEnd();
}

}  // namespace ashlar::cli
