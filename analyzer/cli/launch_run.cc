#include "analyzer/cli/launch_run.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/personality.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analyzer/cli/launch_program.h"

namespace ashlar::cli {
namespace {

constexpr int kSignals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

sigset_t PassedOn() {
  sigset_t out;
  sigemptyset(&out);
  for (const int signal : kSignals) sigaddset(&out, signal);
  return out;
}

void RemoveFolder(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

constexpr char kFolderPrefix[] = "ashlar-";
constexpr std::time_t kYoungSeconds = 60;  // a folder of this age may not be locked yet

// The lock on a folder, which this process holds until its end; -1 where it is another's.
int LockFolder(const std::string& path) {
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (folder < 0 || flock(folder, LOCK_EX | LOCK_NB) == 0) return folder;
  close(folder);
  return -1;
}

// What a launcher that was killed left: folders of this user that nobody holds any more.
void RemoveAbandoned(const std::string& place) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(place, ignored)) {
    const std::string path = entry.path().string();
    struct stat facts {};
    const bool is_ours = entry.path().filename().string().rfind(kFolderPrefix, 0) == 0 &&
                         lstat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == geteuid() &&
                         (facts.st_mode & 0777) == 0700 && std::time(nullptr) - facts.st_mtime > kYoungSeconds;
    const int lock = is_ours ? LockFolder(path) : -1;
    if (lock < 0) continue;
    RemoveFolder(path);
    close(lock);
  }
}

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

// In the new process: calls that are safe after a fork alone.
[[noreturn]] void Become(const Launch& launch, const std::vector<char*>& arguments,
                         const std::vector<char*>& environment) {
  const sigset_t passed_on = PassedOn();
  sigprocmask(SIG_UNBLOCK, &passed_on, nullptr);
  if (launch.has_fixed_addresses) personality(personality(0xffffffff) | ADDR_NO_RANDOMIZE);
  if (launch.prints_to_stderr) dup2(STDERR_FILENO, STDOUT_FILENO);
  execve(launch.path.c_str(), arguments.data(), environment.data());
  const char* why = strerror(errno);
  const int code = errno == ENOENT ? kNotFound : kNotExecutable;
  for (const char* part : {"ashlar: ", launch.path.c_str(), ": ", why, "\n"}) {
    (void)!write(STDERR_FILENO, part, strlen(part));
  }
  _exit(code);
}

// While the number of the process cannot yet be another's: the relay is told before it is given back.
int WaitFor(pid_t program, SignalRelay& relay) {
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(program), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  relay.EndProgram();
  int status = 0;
  while (waitpid(program, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunFolder>> RunFolder::Make() {
  const char* temporary = std::getenv("TMPDIR");
  std::string why;
  for (const std::string& place : {std::string("/dev/shm"), std::string(temporary != nullptr ? temporary : "/tmp")}) {
    RemoveAbandoned(place);
    std::string path = absl::StrCat(place, "/", kFolderPrefix, "XXXXXX");
    if (mkdtemp(path.data()) != nullptr) return std::unique_ptr<RunFolder>(new RunFolder(path, LockFolder(path)));
    why = absl::StrCat("cannot make a folder in ", place, ": ", std::strerror(errno));
  }
  return absl::UnavailableError(why);
}

RunFolder::~RunFolder() {
  RemoveFolder(path_);
  if (lock_ >= 0) close(lock_);
}

SignalRelay::SignalRelay(const std::string& folder) : state_(std::make_shared<State>()) {
  state_->folder = folder;
  const sigset_t passed_on = PassedOn();
  pthread_sigmask(SIG_BLOCK, &passed_on, nullptr);
  std::thread([state = state_, passed_on] {
    for (;;) {
      siginfo_t info{};
      if (sigwaitinfo(&passed_on, &info) < 0) continue;
      const std::lock_guard lock(state->mutex);
      const bool is_from_kernel = info.si_code > 0;  // a terminal's key, which the whole group gets
      if (state->program != 0 && is_from_kernel) continue;
      if (state->program != 0) {
        kill(state->program, info.si_signo);
      } else {
        RemoveFolder(state->folder);
        _exit(128 + info.si_signo);
      }
    }
  }).detach();
}

pid_t SignalRelay::Fork() {
  const std::lock_guard lock(state_->mutex);  // a signal waits until it is known where it goes
  const pid_t program = fork();
  if (program > 0) state_->program = program;
  return program;
}

void SignalRelay::EndProgram() {
  const std::lock_guard lock(state_->mutex);
  state_->program = 0;
}

absl::StatusOr<int> RunProgram(const Launch& launch, SignalRelay& relay) {
  std::vector<std::string> argument_texts = launch.arguments;
  std::vector<std::string> environment_texts = EnvironmentWith(launch.environment);
  const std::vector<char*> arguments = PointersTo(argument_texts);
  const std::vector<char*> environment = PointersTo(environment_texts);
  std::fflush(nullptr);
  const pid_t program = relay.Fork();
  if (program < 0) return absl::UnavailableError(absl::StrCat("cannot make a process: ", std::strerror(errno)));
  if (program == 0) Become(launch, arguments, environment);
  return WaitFor(program, relay);
}

std::string Prepended(const char* variable, const std::string& value) {
  const char* now = std::getenv(variable);
  return now == nullptr || *now == '\0' ? value : absl::StrCat(value, ":", now);
}

}  // namespace ashlar::cli
