#include "launcher/rerun.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "allocator/base/units.h"
#include "console/command.h"
#include "launcher/apart.h"

namespace ashlar::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kRunVariable[] = "ASHLAR_HOLLOW_RUN";
constexpr auto kLook = std::chrono::milliseconds(20);
constexpr std::size_t kMostOutput = 1 << 20;  // of what it printed, the end
constexpr char kNotBegun[] = "it was not run: the time was up";
constexpr char kAskedToEnd[] = "it was stopped, as this command was asked to end";

std::string OutputIn(const RunFolder& folder) { return folder.path() + "/output"; }

// The end of what it printed.
std::string EndOfOutput(const RunFolder& folder) {
  std::ifstream file(OutputIn(folder), std::ios::binary | std::ios::ate);
  const auto size = static_cast<std::size_t>(std::max<std::streamoff>(file.tellg(), 0));
  file.seekg(static_cast<std::streamoff>(size - std::min(size, kMostOutput)));
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string LastLine(const std::string& text) {
  std::string out;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::StripAsciiWhitespace(line).empty()) out = std::string(absl::StripAsciiWhitespace(line));
  }
  return out;
}

bool FoundPortTaken(const std::string& output) {
  return absl::StrContains(output, "Address already in use") || absl::StrContains(output, "EADDRINUSE");
}

// Processes of the run, those too that left its session.
void EndAllOf(const RunFolder& folder) {
  const std::string mark = absl::StrCat(kRunVariable, "=", folder.path());
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    pid_t process = 0;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &process)) continue;
    std::ifstream file(entry.path() / "environ", std::ios::binary);
    const std::string text = {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    const std::vector<absl::string_view> variables = absl::StrSplit(text, '\0');
    if (std::find(variables.begin(), variables.end(), mark) != variables.end()) kill(process, SIGKILL);
  }
}

// In the new process: calls that are safe after a fork alone.
[[noreturn]] void BecomeRerun(const Launch& launch, const std::vector<char*>& arguments,
                              const std::vector<char*>& environment, const RunFolder& folder, const Walls& walls,
                              int input, int output) {
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_dumps = {0, 0};
  setrlimit(RLIMIT_CORE, &no_dumps);
  folder.HoldInProgram();
  TakeSignals();
  FixAddresses(launch);
  dup2(input, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  if (walls.GoBehind()) execve(launch.path.c_str(), arguments.data(), environment.data());
  const char* why = strerror(errno);
  (void)!write(STDERR_FILENO, why, strlen(why));
  _exit(127);
}

std::uint64_t AvailableBytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string key, unit; file >> key;) {
    std::uint64_t kib = 0;
    file >> kib;
    std::getline(file, unit);
    if (key == "MemAvailable:") return kib * kKiB;
  }
  return 0;
}

// One that runs, or has run.
class Running {
 public:
  Running(const Rerun& rerun, double most_seconds) : rerun_(rerun), most_seconds_(most_seconds) {}

  void Start() {
    began_ = Clock::now();
    absl::StatusOr<std::unique_ptr<RunFolder>> folder = RunFolder::MakeOnDisk();
    absl::Status status = folder.status();
    if (status.ok()) {
      end_.folder = *std::move(folder);
      status = WriteFile(end_.folder->path() + "/machine", rerun_.machine);
    }
    if (status.ok()) status = Fork();
    if (!status.ok()) Close(std::string(status.message()));
  }

  // Whether it is still under way.
  bool Look(bool is_asked_to_end) {
    if (is_closed_) return false;
    int status = 0;
    const pid_t ended = waitpid(process_, &status, WNOHANG);
    if (ended == process_) {
      CloseWith(ShellCode(status));
    } else if (ended < 0 && errno != EINTR) {
      Close("it was lost");
    } else if (is_asked_to_end) {
      Close(kAskedToEnd);
    } else if (std::chrono::duration<double>(Clock::now() - began_).count() > most_seconds_) {
      Close(absl::StrFormat("it was stopped after %.0f s", most_seconds_));
    }
    return !is_closed_;
  }

  bool found_port_taken() const { return found_port_taken_; }
  RerunEnd Take() { return std::move(end_); }

 private:
  absl::Status Fork() {
    Launch launch = rerun_.launch;
    const std::string& path = end_.folder->path();
    for (auto& [name, value] : EnvironmentApart(path)) launch.environment[name] = value;
    launch.environment[kRunVariable] = path;
    launch.environment["ASHLAR_RECORD"] = path;
    std::vector<std::string> argument_texts = launch.arguments;
    std::vector<std::string> environment_texts = EnvironmentWith(launch.environment);
    const std::vector<char*> arguments = PointersTo(argument_texts);
    const std::vector<char*> environment = PointersTo(environment_texts);
    const Walls walls(path);
    if (!walls.stand()) return absl::UnavailableError("this Linux keeps no program from writing (Landlock)");
    const int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
    const int output = open(OutputIn(*end_.folder).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    process_ = output < 0 ? -1 : fork();
    const int error = errno;
    if (process_ == 0) BecomeRerun(launch, arguments, environment, *end_.folder, walls, input, output);
    for (const int file : {input, output}) {
      if (file >= 0) close(file);
    }
    if (process_ > 0) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("no process could be made: ", std::strerror(error)));
  }

  void CloseWith(int code) {
    process_ = 0;
    end_.exit_code = code;
    if (code == 0) return Close("");
    const std::string output = EndOfOutput(*end_.folder);
    found_port_taken_ = FoundPortTaken(output);
    const std::string last = LastLine(output);
    Close(absl::StrCat("it ended with exit code ", code, last.empty() ? "" : ": ", last));
  }

  void Close(const std::string& why_not) {
    is_closed_ = true;
    end_.why_not = why_not;
    if (end_.folder == nullptr) return;
    if (process_ > 0) {
      kill(process_, SIGKILL);
      while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
    EndAllOf(*end_.folder);
    end_.results = ReadResults(end_.folder->path());
    end_.kept = KeptAway(end_.folder->path());
  }

  const Rerun& rerun_;
  const double most_seconds_;
  Clock::time_point began_ = {};
  pid_t process_ = 0;
  bool is_closed_ = false;
  bool found_port_taken_ = false;
  RerunEnd end_;
};

}  // namespace

std::size_t RerunsAtOnce(std::uint64_t host_bytes) {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int processors = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
  return std::clamp<std::size_t>(AvailableBytes() / std::max<std::uint64_t>(host_bytes, 1), 1,
                                 static_cast<std::size_t>(std::max(processors, 1)));
}

double MostSecondsOf(double first_seconds) {
  constexpr double kSlower = 5, kStart = 30;
  return kSlower * first_seconds + kStart;
}

std::vector<RerunEnd> RunAgain(const std::vector<Rerun>& reruns, const RerunLimits& limits, SignalRelay& relay,
                               const std::function<void(const std::string&)>& progress) {
  std::vector<std::unique_ptr<Running>> all(reruns.size());
  const Clock::time_point began = Clock::now();
  const auto run = [&](std::vector<std::size_t> waiting, std::size_t at_once) {
    std::vector<std::size_t> under_way;
    while (!waiting.empty() || !under_way.empty()) {
      const bool is_asked_to_end = relay.HasBeenAskedToEnd();
      if (std::chrono::duration<double>(Clock::now() - began).count() > limits.start_seconds) waiting.clear();
      while (!waiting.empty() && under_way.size() < at_once && !is_asked_to_end) {
        const std::size_t next = waiting.front();
        waiting.erase(waiting.begin());
        all[next] = std::make_unique<Running>(reruns[next], limits.most_seconds);
        all[next]->Start();
        under_way.push_back(next);
        if (progress) progress(absl::StrCat("running ", reruns[next].name, ", ", waiting.size(), " more to start"));
      }
      std::erase_if(under_way, [&](std::size_t i) { return !all[i]->Look(is_asked_to_end); });
      if (is_asked_to_end && under_way.empty()) break;
      std::this_thread::sleep_for(kLook);
    }
  };
  relay.Hold(true);
  std::vector<std::size_t> order(reruns.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  run(order, std::max<std::size_t>(limits.at_once, 1));
  std::erase_if(order, [&](std::size_t i) { return all[i] == nullptr || !all[i]->found_port_taken(); });
  if (limits.at_once > 1) run(order, 1);
  relay.Hold(false);
  std::vector<RerunEnd> out;
  const bool is_asked_to_end = relay.HasBeenAskedToEnd();
  for (const std::unique_ptr<Running>& one : all) {
    if (one != nullptr) {
      out.push_back(one->Take());
    } else {
      out.push_back({.is_untried = !is_asked_to_end, .why_not = is_asked_to_end ? kAskedToEnd : kNotBegun});
    }
  }
  return out;
}

}  // namespace ashlar::cli
