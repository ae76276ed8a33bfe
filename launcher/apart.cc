#include "launcher/apart.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace ashlar::cli {
namespace {

// Linux's landlock.h (userspace API), which build machines may not have. The numbers are alike on every architecture.
constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr std::uint32_t kVersionFlag = 1;
constexpr int kPathBeneath = 1;
constexpr std::uint64_t kWriteFile = 1 << 1;
constexpr std::uint64_t kRemoveAndMake = 0x1ff0;  // LANDLOCK_ACCESS_FS_REMOVE_DIR to _MAKE_SYM
constexpr std::uint64_t kRefer = 1 << 13;         // from version 2 on
constexpr std::uint64_t kTruncate = 1 << 14;      // from version 3 on

struct PathRule {
  std::uint64_t allowed;
  std::int32_t parent;
} __attribute__((packed));

long Version() { return syscall(kCreateRuleset, nullptr, std::size_t{0}, kVersionFlag); }

std::uint64_t Writing(long version) {
  return kWriteFile | kRemoveAndMake | (version >= 2 ? kRefer : 0) | (version >= 3 ? kTruncate : 0);
}

bool Allow(int rules, const std::string& folder, std::uint64_t access) {
  const int parent = open(folder.c_str(), O_PATH | O_CLOEXEC);
  if (parent < 0) return false;
  const PathRule rule = {access, parent};
  const bool is_added = syscall(kAddRule, rules, kPathBeneath, &rule, 0) == 0;
  close(parent);
  return is_added;
}

// A port that is free now.
int FreePort() {
  const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* any = reinterpret_cast<sockaddr*>(&address);
  const bool is_bound = file >= 0 && bind(file, any, size) == 0 && getsockname(file, any, &size) == 0;
  if (file >= 0) close(file);
  return is_bound ? ntohs(address.sin_port) : 0;
}

// As apart.py has them.
std::string FilesIn(const std::string& folder) { return folder + "/files"; }
std::string FilesList(const std::string& folder) { return folder + "/files.written"; }
std::string HostsList(const std::string& folder) { return folder + "/files.unsent"; }

}  // namespace

bool Walls::AreKnown() { return Version() >= 1; }

Walls::Walls(const std::string& folder) {
  const long version = Version();
  if (version < 1) return;
  const std::uint64_t handled = Writing(version);
  const int rules = static_cast<int>(syscall(kCreateRuleset, &handled, sizeof(handled), 0));
  if (rules < 0) return;
  fcntl(rules, F_SETFD, FD_CLOEXEC);
  if (Allow(rules, folder, handled) && Allow(rules, "/dev", handled) && Allow(rules, "/proc", handled)) {
    rules_ = rules;
  } else {
    close(rules);
  }
}

Walls::~Walls() {
  if (rules_ >= 0) close(rules_);
}

bool Walls::GoBehind() const {
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && syscall(kRestrictSelf, rules_, 0) == 0;
}

namespace {

std::map<std::string, std::string> EnvironmentApart(const std::string& folder) {
  std::map<std::string, std::string> out = {
      {"ASHLAR_APART", FilesIn(folder)},
      // Where models and data come from is known by now; nothing is sent.
      {"HF_HUB_OFFLINE", "1"},
      {"HF_DATASETS_OFFLINE", "1"},
      {"TRANSFORMERS_OFFLINE", "1"},
      {"WANDB_MODE", "offline"},
      {"COMET_MODE", "DISABLED"},
      {"COMET_START_ONLINE", "0"},
      {"NEPTUNE_MODE", "offline"},
      {"CLEARML_OFFLINE_MODE", "1"},
      {"SWANLAB_MODE", "offline"},
      {"PYTHONDONTWRITEBYTECODE", "1"},
  };
  const std::string own = folder + "/own/";
  for (const char* name : {"TMPDIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TORCH_EXTENSIONS_DIR",
                           "CUDA_CACHE_PATH", "NUMBA_CACHE_DIR", "MPLCONFIGDIR", "WANDB_DIR", "WANDB_CACHE_DIR",
                           "COMET_OFFLINE_DIRECTORY", "TENSORBOARD_LOGGING_DIR"}) {
    out[name] = own + name;
    std::error_code ignored;
    std::filesystem::create_directories(out[name], ignored);
  }
  out["MLFLOW_TRACKING_URI"] = absl::StrCat("file:", own, "mlruns");
  if (const int port = FreePort(); port > 0) {
    out["MASTER_PORT"] = absl::StrCat(port);
    out["PET_MASTER_PORT"] = out["MASTER_PORT"];  // of torchrun
  }
  return out;
}

// In the new process: calls that are safe after a fork alone.
[[noreturn]] void Become(const Launch& launch, const std::vector<char*>& arguments,
                         const std::vector<char*>& environment, const RunFolder& folder, const ApartFiles& files,
                         int kept) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_dumps = {0, 0};
  setrlimit(RLIMIT_CORE, &no_dumps);
  folder.HoldInProgram();
  TakeSignals();
  FixAddresses(launch);
  dup2(files.input(), STDIN_FILENO);
  dup2(files.output(), STDOUT_FILENO);
  dup2(files.output(), STDERR_FILENO);
  if (kept >= 0) fcntl(kept, F_SETFD, 0);
  if (files.walls().GoBehind()) execve(launch.path.c_str(), arguments.data(), environment.data());
  const char* why = strerror(errno);
  (void)!write(STDERR_FILENO, why, strlen(why));
  _exit(127);
}

}  // namespace

Launch LaunchApart(Launch launch, const RunFolder& folder) {
  for (auto& [name, value] : EnvironmentApart(folder.path())) launch.environment[name] = value;
  launch.environment["ASHLAR_HOLLOW_RUN"] = folder.path();
  launch.environment["ASHLAR_RECORD"] = folder.path();
  return launch;
}

std::string OutputIn(const RunFolder& folder) { return folder.path() + "/output"; }

ApartFiles::ApartFiles(const RunFolder& folder)
    : walls_(folder.path()),
      input_(open("/dev/null", O_RDONLY | O_CLOEXEC)),
      output_(open(OutputIn(folder).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {}

ApartFiles::~ApartFiles() {
  for (const int file : {input_, output_}) {
    if (file >= 0) close(file);
  }
}

absl::Status ApartFiles::status() const {
  if (!walls_.stand()) return absl::UnavailableError("this Linux keeps no program from writing (Landlock)");
  if (input_ >= 0 && output_ >= 0) return absl::OkStatus();
  return absl::UnavailableError("the file for its output could not be made");
}

absl::StatusOr<pid_t> StartApart(const Launch& launch, const RunFolder& folder, int kept) {
  std::vector<std::string> argument_texts = launch.arguments;
  std::vector<std::string> environment_texts = EnvironmentWith(launch.environment);
  const std::vector<char*> arguments = PointersTo(argument_texts);
  const std::vector<char*> environment = PointersTo(environment_texts);
  const ApartFiles files(folder);
  if (!files.status().ok()) return files.status();
  const pid_t process = fork();
  if (process == 0) Become(launch, arguments, environment, folder, files, kept);
  if (process > 0) return process;
  return absl::UnavailableError(absl::StrCat("no process could be made: ", std::strerror(errno)));
}

namespace {

std::vector<std::string> LinesOf(const std::string& path) {
  std::ifstream list(path);
  std::set<std::string> out;
  for (std::string line; std::getline(list, line);) out.insert(line);
  return {out.begin(), out.end()};
}

}  // namespace

std::vector<std::string> KeptAway(const std::string& folder) { return LinesOf(FilesList(folder)); }

std::vector<std::string> NotSent(const std::string& folder) { return LinesOf(HostsList(folder)); }

}  // namespace ashlar::cli
