#include "launcher/rerun.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
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
#include "allocator/base/host_memory.h"
#include "allocator/base/units.h"
#include "console/command.h"
#include "launcher/apart.h"

namespace ashlar::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLook = std::chrono::milliseconds(20);
constexpr int kLost = -1;
constexpr std::size_t kMostOutput = 1 << 20;  // of what it printed, the end
constexpr char kNotBegun[] = "it was not run: the time was up";
constexpr char kAskedToEnd[] = "it was stopped, as this command was asked to end";

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
  const std::string mark = absl::StrCat("ASHLAR_HOLLOW_RUN=", folder.path());
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

// One that runs, or has run.
class Running {
 public:
  // `server`: it is forked there; nullptr: it is a process of its own from its start.
  Running(const Rerun& rerun, double most_seconds, ForkServer* server)
      : rerun_(rerun), most_seconds_(most_seconds), server_(server) {}

  void Start() {
    began_ = Clock::now();
    absl::StatusOr<std::unique_ptr<RunFolder>> folder =
        server_ != nullptr ? RunFolder::MakeIn({server_->place()}) : RunFolder::MakeOnDisk();
    absl::Status status = folder.status();
    if (status.ok()) {
      end_.folder = *std::move(folder);
      status = WriteFile(end_.folder->path() + "/machine", rerun_.machine);
    }
    if (status.ok()) status = Begin();
    if (!status.ok()) Close(std::string(status.message()));
  }

  // Whether it is still under way.
  bool Look(bool is_asked_to_end) {
    if (is_closed_) return false;
    if (const std::optional<int> status = Ended(); status.has_value()) {
      CloseWith(*status);
    } else if (is_asked_to_end) {
      Close(kAskedToEnd);
    } else if (std::chrono::duration<double>(Clock::now() - began_).count() > most_seconds_) {
      Close(absl::StrFormat("it was stopped after %.0f s", most_seconds_));
    }
    return !is_closed_;
  }

  bool found_port_taken() const { return found_port_taken_; }
  // A fork that came to no end of its own making may do so by itself.
  bool is_open() const {
    const auto ran_out = [](const ProcessRun& run) { return run.OutOfMemory() > 0; };
    return server_ != nullptr && !end_.why_not.empty() && end_.why_not != kAskedToEnd &&
           std::none_of(end_.results.runs.begin(), end_.results.runs.end(), ran_out);
  }
  RerunEnd Take() { return std::move(end_); }

 private:
  absl::Status Begin() {
    const Launch launch = LaunchApart(rerun_.launch, *end_.folder);
    if (server_ != nullptr) {
      process_ = server_->Fork(launch, *end_.folder);
      return process_ > 0 ? absl::OkStatus() : absl::UnavailableError("the process that is forked for it is gone");
    }
    const absl::StatusOr<pid_t> process = StartApart(launch, *end_.folder);
    if (process.ok()) process_ = *process;
    return process.status();
  }

  // As waitpid says it; nullopt while it runs.
  std::optional<int> Ended() {
    if (server_ != nullptr) return server_->EndOf(process_);
    int status = 0;
    const pid_t ended = waitpid(process_, &status, WNOHANG);
    if (ended < 0 && errno != EINTR) return kLost;
    return ended == process_ ? std::optional(status) : std::nullopt;
  }

  void EndProcess() {
    if (process_ == 0) return;
    kill(process_, SIGKILL);
    while (!Ended().has_value()) std::this_thread::sleep_for(kLook);
  }

  void CloseWith(int status) {
    process_ = 0;
    if (status == kLost) return Close("it was lost");
    end_.exit_code = ShellCode(status);
    if (status == 0) return Close("");
    const std::string output = EndOfOutput(*end_.folder);
    found_port_taken_ = FoundPortTaken(output);
    const std::string last = LastLine(output);
    Close(absl::StrCat("it ended with exit code ", ShellCode(status), last.empty() ? "" : ": ", last));
  }

  void Close(const std::string& why_not) {
    is_closed_ = true;
    end_.why_not = why_not;
    if (end_.folder == nullptr) return;
    EndProcess();
    EndAllOf(*end_.folder);
    end_.results = ReadResults(end_.folder->path());
    end_.kept = KeptAway(end_.folder->path());
    end_.not_sent = NotSent(end_.folder->path());
  }

  const Rerun& rerun_;
  const double most_seconds_;
  ForkServer* const server_;
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
  return std::clamp<std::size_t>(AvailableHostBytes().value_or(0) / std::max<std::uint64_t>(host_bytes, 1), 1,
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
  const auto server_of = [&](const Rerun& rerun, bool is_alone) {
    return !is_alone && rerun.can_be_forked && limits.server != nullptr &&
                   limits.server->CanBegin(rerun.launch, rerun.machine)
               ? limits.server
               : nullptr;
  };
  const auto run = [&](std::vector<std::size_t> waiting, std::size_t at_once, bool is_alone) {
    std::vector<std::size_t> under_way;
    while (!waiting.empty() || !under_way.empty()) {
      const bool is_asked_to_end = relay.HasBeenAskedToEnd();
      if (std::chrono::duration<double>(Clock::now() - began).count() > limits.start_seconds) waiting.clear();
      while (!waiting.empty() && under_way.size() < at_once && !is_asked_to_end) {
        const std::size_t next = waiting.front();
        waiting.erase(waiting.begin());
        all[next] = std::make_unique<Running>(reruns[next], limits.most_seconds, server_of(reruns[next], is_alone));
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
  const std::size_t at_once = std::max<std::size_t>(limits.at_once, 1);
  run(order, at_once, /*is_alone=*/false);
  const auto again_where = [&](bool (Running::*is_wanted)() const) {
    std::vector<std::size_t> out = order;
    std::erase_if(out, [&](std::size_t i) { return all[i] == nullptr || !(*all[i].*is_wanted)(); });
    return out;
  };
  if (!limits.are_forks_final) run(again_where(&Running::is_open), at_once, /*is_alone=*/true);
  if (at_once > 1) run(again_where(&Running::found_port_taken), 1, /*is_alone=*/true);
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
