#include "launcher/attach/python_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "commands/shared/processes.h"
#include "launcher/attach/held_thread.h"
#include "launcher/attach/loaded_functions.h"

namespace ashlar::cli {
namespace {

constexpr std::uint64_t kPageBytes = 4096;
constexpr int kMostQueueTries = 5;  // the thread may have the lock that is asked for
constexpr useconds_t kBetweenTries = 20'000;
constexpr std::size_t kLookedThroughWords = 128;  // the frames of the C library's waits are smaller

// What a child answers: fits into one write of a pipe, which is whole or not at all.
struct ApartAnswer {
  int code = 0;  // of a status
  std::uint64_t value = 0;
  std::array<char, 400> message = {};
};

// `ask` in a child that goes on where this process is ended, and that no signal but SIGKILL reaches.
absl::StatusOr<std::uint64_t> AskApart(const std::function<absl::StatusOr<std::uint64_t>()>& ask) {
  std::array<int, 2> pipe_ends{};
  if (pipe(pipe_ends.data()) != 0) return absl::ErrnoToStatus(errno, "no pipe");
  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &before);
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    const absl::StatusOr<std::uint64_t> got = ask();
    ApartAnswer answer;
    if (got.ok()) {
      answer.value = *got;
    } else {
      answer.code = static_cast<int>(got.status().code());
      const absl::string_view message = got.status().message();
      std::copy_n(message.begin(), std::min(message.size(), answer.message.size() - 1), answer.message.begin());
    }
    const ssize_t written = write(pipe_ends[1], &answer, sizeof(answer));
    _exit(written == ssize_t{sizeof(answer)} ? 0 : 1);
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  close(pipe_ends[1]);
  ApartAnswer answer;
  ssize_t got = -1;
  do {
    got = read(pipe_ends[0], &answer, sizeof(answer));
  } while (got < 0 && errno == EINTR);
  close(pipe_ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  if (got != ssize_t{sizeof(answer)}) return absl::InternalError("what asks the process has ended");
  if (answer.code != 0) return absl::Status(static_cast<absl::StatusCode>(answer.code), answer.message.data());
  return answer.value;
}

bool HasOurFiles(std::int64_t pid) {
  struct stat ours {
  }, theirs{};
  return stat("/", &ours) == 0 && stat(absl::StrCat("/proc/", pid, "/root/").c_str(), &theirs) == 0 &&
         ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

bool RunsSilently(std::vector<std::string> command) {
  std::vector<char*> arguments;
  for (std::string& one : command) arguments.push_back(one.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_addopen(&actions, file, "/dev/null", O_RDWR, 0);
  }
  pid_t child = 0;
  const int failed = posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  return failed == 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

absl::StatusOr<PythonProcess> PythonProcess::Find(std::int64_t pid) {
  const std::vector<std::int64_t> processes = answers::ProcessesFrom(pid);
  if (processes.empty()) return absl::NotFoundError(absl::StrCat("there is no process ", pid));
  for (const std::int64_t one : processes) {
    const absl::StatusOr<LoadedFunctions> loaded = LoadedFunctions::Of(one);
    if (!loaded.ok()) return loaded.status();
    if (!loaded->HasLoaded("libc10_cuda.so") || !loaded->Find("Py_AddPendingCall").has_value()) continue;
    const absl::StatusOr<Functions> functions = FunctionsOf(one);
    if (!functions.ok()) return functions.status();
    return PythonProcess(one, *functions);
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "process ", pid, ": neither it nor a process below it has loaded PyTorch with CUDA: nothing is held there"));
}

absl::StatusOr<PythonProcess::Functions> PythonProcess::FunctionsOf(std::int64_t pid) {
  const absl::StatusOr<LoadedFunctions> loaded = LoadedFunctions::Of(pid);
  if (!loaded.ok()) return loaded.status();
  Functions out;
  struct Wanted {
    const char* name;
    std::uint64_t* at;
  };
  for (const Wanted& wanted :
       {Wanted{"Py_AddPendingCall", &out.add_pending_call}, Wanted{"PyRun_SimpleString", &out.run_simple_string},
        Wanted{"mmap", &out.map}, Wanted{"munmap", &out.unmap}}) {
    const std::optional<std::uint64_t> at = loaded->Find(wanted.name);
    if (!at.has_value()) {
      return absl::FailedPreconditionError(absl::StrCat("process ", pid, ": its ", wanted.name, " was not found"));
    }
    *wanted.at = *at;
  }
  return out;
}

bool PythonProcess::IsAlive() const { return kill(static_cast<pid_t>(pid_), 0) == 0 || errno == EPERM; }

absl::Status PythonProcess::Queue(const std::string& line, const std::string& file) {
  absl::Status status = QueueAsPendingCall(line);
  is_remote_ = absl::IsUnimplemented(status) && HasTakenRemotely(file);
  return is_remote_ ? absl::OkStatus() : status;
}

// Asked by the process's own Python, as only the same release can.
bool PythonProcess::HasTakenRemotely(const std::string& file) const {
  if (!HasOurFiles(pid_)) return false;
  std::error_code error;
  const std::string python = std::filesystem::read_symlink(absl::StrCat("/proc/", pid_, "/exe"), error);
  if (error || !absl::StartsWith(python.substr(python.rfind('/') + 1), "python3")) return false;
  return RunsSilently({python, "-I", "-S", "-c", "import sys; sys.remote_exec(int(sys.argv[1]), sys.argv[2])",
                       absl::StrCat(pid_), file});
}

absl::Status PythonProcess::QueueAsPendingCall(const std::string& line) {
  const std::uint64_t bytes = (line.size() + kPageBytes) / kPageBytes * kPageBytes;  // with the zero at its end
  const auto thread = static_cast<pid_t>(pid_);
  const absl::StatusOr<std::uint64_t> page = AskApart([&]() -> absl::StatusOr<std::uint64_t> {
    std::uint64_t at = 0;
    absl::Status last;
    for (int i = 0; i < kMostQueueTries; ++i) {
      absl::StatusOr<std::unique_ptr<HeldThread>> held = HeldThread::Hold(thread);
      if (!held.ok()) return held.status();
      if (at == 0) {
        const absl::StatusOr<std::uint64_t> mapped = (*held)->Call(
            functions_.map, {0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, ~std::uint64_t{0}, 0});
        if (!mapped.ok()) return mapped.status();
        if (*mapped == ~std::uint64_t{0})
          return absl::ResourceExhaustedError(absl::StrCat("process ", pid_, " has no memory"));
        at = *mapped;
        if (absl::Status status = (*held)->Write(at, line); !status.ok()) return status;
      }
      const absl::StatusOr<std::uint64_t> queued =
          (*held)->Call(functions_.add_pending_call, {functions_.run_simple_string, at, 0, 0, 0, 0});
      if (queued.ok() && static_cast<std::int32_t>(*queued) == 0) return at;
      last = queued.ok() ? absl::ResourceExhaustedError(absl::StrCat("process ", pid_, " has much to do already"))
                         : queued.status();
      if (absl::IsNotFound(last)) return last;
      held->reset();
      usleep(kBetweenTries);
    }
    return last;
  });
  if (!page.ok()) return page.status();
  page_ = *page;
  page_bytes_ = bytes;
  return absl::OkStatus();
}

void PythonProcess::Nudge() const {
  static_cast<void>(AskApart([&]() -> absl::StatusOr<std::uint64_t> {
    const absl::StatusOr<LoadedFunctions> loaded = LoadedFunctions::Of(pid_);
    if (!loaded.ok()) return loaded.status();
    absl::StatusOr<std::unique_ptr<HeldThread>> held = HeldThread::Hold(static_cast<pid_t>(pid_));
    if (!held.ok()) return held.status();
    if (!(*held)->WaitsForLock()) return 0;
    const LoadedObject* const python = loaded->CodeAt(functions_.add_pending_call);
    const LoadedObject* const system = loaded->CodeAt(functions_.map);
    for (const std::uint64_t word : (*held)->Stack(kLookedThroughWords)) {
      const LoadedObject* const caller = loaded->CodeAt(word);
      if (caller == nullptr || caller == system) continue;
      // Who waits is the first outside of the C library: another library might not look up as Python does.
      if (caller == python) (*held)->InterruptWait();
      break;
    }
    return 0;
  }));
}

void PythonProcess::LetGo(bool has_run) {
  if (page_ == 0 || !has_run) return;
  static_cast<void>(AskApart([&]() -> absl::StatusOr<std::uint64_t> {
    absl::StatusOr<std::unique_ptr<HeldThread>> held = HeldThread::Hold(static_cast<pid_t>(pid_));
    if (!held.ok()) return held.status();
    return (*held)->Call(functions_.unmap, {page_, page_bytes_, 0, 0, 0, 0});
  }));
  page_ = 0;
}

}  // namespace ashlar::cli
