#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "commands/commands.h"
#include "commands/shared/layout.h"
#include "commands/watch/asked_names.h"
#include "commands/watch/watch.h"
#include "commands/watch_screen.h"
#include "console/command.h"

namespace ashlar::cli {
namespace {

constexpr double kLeastInterval = 0.05;
constexpr double kMostInterval = 3600;
constexpr int kNamesLookMilliseconds = 50;
constexpr int kMostNamesWaitMilliseconds = 60'000;

struct WatchFlags {
  std::string input;
  double interval_seconds = 1;
  bool once = false;
  bool json = false;
  bool names = false;
};

std::optional<std::int64_t> ProcessOf(const std::string& input) {
  std::int64_t pid = 0;
  const bool is_number =
      absl::c_all_of(input, [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); });
  return is_number && absl::SimpleAtoi(input, &pid) ? std::optional(pid) : std::nullopt;
}

// A number is a process, unless a file has that name.
absl::StatusOr<std::string> FileOf(const std::string& input) {
  const std::optional<std::int64_t> pid = ProcessOf(input);
  if (!pid.has_value() || access(input.c_str(), F_OK) == 0) return input;
  return answers::RecordedFileOf(*pid);
}

bool IsDumb() {
  const char* terminal = std::getenv("TERM");
  return terminal == nullptr || absl::string_view(terminal) == "dumb";
}

// How long the file has said nothing, where its last event is one of today's.
std::string AgeLine(const answers::WatchAnswer& answer) {
  if (answer.has_ended) return "  the recording has ended; q ends the view";
  if (!answer.last_us.has_value()) return "  q ends the view";
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto age = std::chrono::duration_cast<std::chrono::microseconds>(now).count() - *answer.last_us;
  return absl::StrFormat("  last event %.1f s ago; q ends the view", std::max(0.0, static_cast<double>(age) / 1e6));
}

// The end of a view for which nothing more will come: all that did was shown.
int SayStopped(const answers::WatchAnswer& answer) {
  return Fail(kOk, absl::UnavailableError(absl::StrCat(answer.source, ": ", answer.stopped)));
}

// What was on the screen goes with it: the last look is printed below where the command was given.
int RunScreen(answers::WatchedFile& file, int milliseconds) {
  absl::StatusOr<answers::WatchAnswer> answer;
  {
    const WatchScreen screen(/*draws=*/true);
    do {
      answer = file.Look();
      if (!answer.ok() || !answer->stopped.empty()) break;
      const std::size_t width = std::max(report::kLeastWatchWidth, WatchScreen::Columns());
      screen.Draw(report::ToText(*answer, width) + report::Shortened(AgeLine(*answer), width) + "\n");
    } while (!screen.WaitForEnd(milliseconds));
  }
  if (!answer.ok()) return Fail(kUnreadable, answer.status());
  if (answer->stopped.empty()) return kOk;
  const std::size_t width = std::max(report::kLeastWatchWidth, WatchScreen::Columns());
  return Print(report::ToText(*answer, width)) ? SayStopped(*answer) : kUnreadable;
}

// A line a look, until the recording has ended or nothing more will come.
int RunLines(answers::WatchedFile& file, int milliseconds) {
  const WatchScreen signals(/*draws=*/false);
  while (true) {
    const absl::StatusOr<answers::WatchAnswer> answer = file.Look();
    if (!answer.ok()) return Fail(kUnreadable, answer.status());
    if (!Print(report::ToLine(*answer))) return kUnreadable;
    if (!answer->stopped.empty()) return SayStopped(*answer);
    if (answer->has_ended || signals.WaitForEnd(milliseconds)) return kOk;
  }
}

int RunOnce(answers::WatchedFile& file, bool as_json) {
  const absl::StatusOr<answers::WatchAnswer> answer = file.Look();
  if (!answer.ok()) return Fail(kUnreadable, answer.status());
  return Print(as_json ? report::ToJson(*answer) : report::ToText(*answer, report::TextWidth())) ? kOk : kUnreadable;
}

// Python answers between two of its instructions: a call of a library that lasts is waited for.
absl::Status WaitForAnswer(const answers::AskedProcess& process) {
  const WatchScreen signals(/*draws=*/false);
  for (int waited = 0; !process.HasAnswered(); waited += kNamesLookMilliseconds) {
    if (!process.IsAlive()) {
      return absl::UnavailableError(absl::StrCat("process ", process.pid(), " has ended before it answered"));
    }
    if (waited >= kMostNamesWaitMilliseconds) {
      return absl::DeadlineExceededError(absl::StrCat("process ", process.pid(), " has not answered within ",
                                                      kMostNamesWaitMilliseconds / 1000,
                                                      " s: its main thread is in a call that lasts; ask again"));
    }
    if (signals.WaitForEnd(kNamesLookMilliseconds)) return absl::CancelledError("nothing was waited for any more");
  }
  return absl::OkStatus();
}

int RunNames(const WatchFlags& flags) {
  const std::optional<std::int64_t> pid = ProcessOf(flags.input);
  if (!pid.has_value()) {
    return Fail(kUsage, absl::InvalidArgumentError("--names: a process is asked: give its number, not a file"));
  }
  absl::StatusOr<answers::AskedProcess> process = answers::AskedProcess::Find(*pid);
  if (!process.ok()) return Fail(kUnreadable, process.status());
  if (absl::Status status = process->Ask(); !status.ok()) return Fail(kUnreadable, status);
  if (absl::Status status = WaitForAnswer(*process); !status.ok()) return Fail(kUnreadable, status);
  const absl::StatusOr<answers::AskedNames> names = answers::ReadNames(process->snapshot());
  if (!names.ok()) return Fail(kUnreadable, names.status());
  return Print(report::ToText(process->pid(), *names, process->snapshot())) ? kOk : kUnreadable;
}

int RunWatch(const WatchFlags& flags) {
  if (flags.names) return RunNames(flags);
  if (!(flags.interval_seconds >= kLeastInterval && flags.interval_seconds <= kMostInterval)) {
    return Fail(kUsage, absl::InvalidArgumentError(absl::StrCat("--interval: ", flags.interval_seconds,
                                                                " is not between 0.05 and 3600 seconds")));
  }
  const absl::StatusOr<std::string> path = FileOf(flags.input);
  if (!path.ok()) return Fail(kUnreadable, path.status());
  const absl::StatusOr<std::unique_ptr<answers::WatchedFile>> file = answers::WatchedFile::Open(*path);
  if (!file.ok()) return Fail(kUnreadable, file.status());
  const auto milliseconds = static_cast<int>(flags.interval_seconds * 1000);
  if (flags.once || flags.json) return RunOnce(**file, flags.json);
  if (isatty(STDOUT_FILENO) == 1 && !IsDumb()) return RunScreen(**file, milliseconds);
  return RunLines(**file, milliseconds);
}

}  // namespace

void AddWatch(CommandLine& line) {
  Command app = line.AddCommand("watch", "where a recorded run is now, as it goes");
  app.Example("ashlar watch run.ashlar");
  auto flags = std::make_shared<WatchFlags>();
  app.Add("input", flags->input, "the number of a process that records, or the file that is being recorded into")
      .Required();
  app.Add("--interval", flags->interval_seconds, "seconds between looks (default 1)");
  const Flag once = app.Add("--once", flags->once, "one look, as text");
  const Flag json = app.Add("--json", flags->json, "one look, as JSON (ashlar schema watch)");
  app.Add("--names", flags->names,
          "asks a PyTorch program under record or dry-run who holds its memory now, by name; it waits meanwhile")
      .Excludes(once)
      .Excludes(json);
  app.OnRun([flags] { return RunWatch(*flags); });
}

}  // namespace ashlar::cli
