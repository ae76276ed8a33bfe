#include "launcher/run_program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "launcher/program.h"
#include "launcher/signal_witness.h"

namespace ashlar::cli {
namespace {

// The terminal that started this process, if there is one: which process group has its foreground.
class OwnTerminal {
 public:
  OwnTerminal() : file_(open("/dev/tty", O_RDWR | O_CLOEXEC)) {}
  ~OwnTerminal() {
    if (file_ >= 0) close(file_);
  }
  OwnTerminal(const OwnTerminal&) = delete;
  OwnTerminal& operator=(const OwnTerminal&) = delete;

  bool exists() const { return file_ >= 0; }
  bool IsOf(pid_t group) const { return exists() && tcgetpgrp(file_) == group; }
  bool IsOurs() const { return IsOf(getpgrp()); }
  // Also from the background, where the terminal would stop who asks.
  void GiveTo(pid_t group) const {
    sigset_t asks, before;
    sigemptyset(&asks);
    sigaddset(&asks, SIGTTOU);
    sigprocmask(SIG_BLOCK, &asks, &before);
    tcsetpgrp(file_, group);
    sigprocmask(SIG_SETMASK, &before, nullptr);
  }

 private:
  int file_;
};

// Whether somebody would continue this process's group: else Linux stops no group by a terminal's key.
bool IsWatched() {
  const pid_t parent = getppid();
  return parent != 0 && getsid(parent) == getsid(0);
}

// How the program stands to this process's job. Where others of the job want the terminal's keys too, as a script or a
// test runner that started this process does, the program stays in their group and gets them with them. Without a
// terminal it does too: who ends the group, also by a signal that nobody can pass on, ends the program with it.
struct Job {
  const OwnTerminal terminal = {};
  const bool is_foreground = terminal.IsOurs();
  const ProgramGroup group = terminal.exists() && getpgrp() == getpid() && (is_foreground || IsWatched())
                                 ? ProgramGroup::kOwn
                                 : ProgramGroup::kOurs;
  bool has_own_group() const { return group == ProgramGroup::kOwn; }
};

// In the new process: calls that are safe after a fork alone.
[[noreturn]] void Become(const Launch& launch, const std::vector<char*>& arguments,
                         const std::vector<char*>& environment, const RunFolder& folder, const Job& job) {
  if (job.has_own_group()) setpgid(0, 0);
  if (job.has_own_group() && job.is_foreground) job.terminal.GiveTo(getpid());
  folder.HoldInProgram();
  TakeSignals();
  FixAddresses(launch);
  if (launch.prints_to_stderr) dup2(STDERR_FILENO, STDOUT_FILENO);
  execve(launch.path.c_str(), arguments.data(), environment.data());
  const char* why = strerror(errno);
  const int code = errno == ENOENT ? kNotFound : kNotExecutable;
  for (const char* part : {"ashlar: ", launch.path.c_str(), ": ", why, "\n"}) {
    (void)!write(STDERR_FILENO, part, strlen(part));
  }
  _exit(code);
}

// The program was stopped, and leads a group. By the terminal this process's group stops with it, and both go on
// together; a program that asked for the terminal while the shell had given it to this process gets it.
void StopGroupWith(pid_t program, int signal, const OwnTerminal& terminal) {
  const bool asked = signal == SIGTTIN || signal == SIGTTOU;
  const bool may_have_it = asked && (terminal.IsOurs() || terminal.IsOf(program));
  if (!may_have_it && IsWatched()) {
    if (terminal.IsOf(program)) terminal.GiveTo(getpgrp());
    kill(0, SIGSTOP);
  }
  if (terminal.IsOurs()) terminal.GiveTo(program);
  kill(-program, SIGCONT);
}

void StopWith(pid_t program, int signal, const Job& job) {
  if (!job.terminal.exists() || signal == SIGSTOP) return;
  if (job.has_own_group()) {
    StopGroupWith(program, signal, job.terminal);
  } else if (signal == SIGTSTP) {  // by the others the terminal has stopped this process too
    kill(getpid(), SIGSTOP);
  }
}

// Waits until the program has ended, and does not take its status.
void WaitForEnd(pid_t program, const Job& job) {
  const auto id = static_cast<id_t>(program);
  for (;;) {
    siginfo_t info{};
    if (waitid(P_PID, id, &info, WEXITED | WSTOPPED | WNOWAIT) != 0) {
      if (errno == EINTR) continue;
      return;
    }
    if (info.si_code != CLD_STOPPED) return;
    LetGroupSignalsArrive();  // it may have been continued together with this process
    info = {};
    if (waitid(P_PID, id, &info, WSTOPPED | WNOHANG) == 0 && info.si_pid == program) {
      StopWith(program, info.si_status, job);
    }
  }
}

// While the number of the process cannot yet be another's: the relay is told before it is given back.
int WaitFor(pid_t program, const Job& job, SignalRelay& relay) {
  WaitForEnd(program, job);
  if (job.has_own_group() && job.terminal.IsOf(program)) job.terminal.GiveTo(getpgrp());
  relay.EndProgram();
  int status = 0;
  while (waitpid(program, &status, 0) < 0 && errno == EINTR) {
  }
  return ShellCode(status);
}

}  // namespace

std::vector<std::string> EnvironmentWith(const std::map<std::string, std::string>& more) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (more.count(text.substr(0, text.find('='))) == 0) out.push_back(text);
  }
  for (const auto& [name, value] : more) out.push_back(absl::StrCat(name, "=", value));
  return out;
}

std::vector<char*> PointersTo(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

void FixAddresses(const Launch& launch) {
  if (launch.has_fixed_addresses) personality(personality(0xffffffff) | ADDR_NO_RANDOMIZE);
}

int ShellCode(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

absl::StatusOr<int> RunProgram(const Launch& launch, const RunFolder& folder, SignalRelay& relay) {
  std::vector<std::string> argument_texts = launch.arguments;
  std::vector<std::string> environment_texts = EnvironmentWith(launch.environment);
  const std::vector<char*> arguments = PointersTo(argument_texts);
  const std::vector<char*> environment = PointersTo(environment_texts);
  std::fflush(nullptr);
  const Job job;
  const pid_t program = relay.Fork(job.group);
  if (program < 0) return absl::UnavailableError(absl::StrCat("cannot make a process: ", std::strerror(errno)));
  if (program == 0) Become(launch, arguments, environment, folder, job);
  return WaitFor(program, job, relay);
}

std::string Prepended(const char* variable, const std::string& value) {
  const char* now = std::getenv(variable);
  return now == nullptr || *now == '\0' ? value : absl::StrCat(value, ":", now);
}

}  // namespace ashlar::cli
