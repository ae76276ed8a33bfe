#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "commands/commands.h"
#include "commands/watch/asked_names.h"
#include "commands/watch_screen.h"
#include "console/command.h"
#include "console/installed_files.h"
#include "launcher/attach/heap_look.h"
#include "launcher/attach/python_process.h"

namespace ashlar::cli {
namespace {

constexpr int kAttachLookMilliseconds = 20;
constexpr int kNudgeAfterMilliseconds = 500;
constexpr double kMostAttachSeconds = 3600;

struct AttachFlags {
  std::int64_t pid = 0;
  HeapLookOptions look;
  double timeout_seconds = 30;
  std::string watch;
  std::string save;
};

// "60s", "60"; nullopt where it is no time.
std::optional<double> SecondsOf(absl::string_view text) {
  double seconds = 0;
  if (!text.empty() && text.back() == 's') text.remove_suffix(1);
  return absl::SimpleAtod(text, &seconds) && seconds > 0 && seconds <= kMostAttachSeconds ? std::optional(seconds)
                                                                                          : std::nullopt;
}

// Python answers between two of its instructions: a call of a library that lasts is waited for.
absl::Status WaitForLook(const PythonProcess& process, const HeapLook& look, double timeout_seconds,
                         const WatchScreen& signals) {
  const auto most = static_cast<int>(timeout_seconds * 1000);
  for (int waited = 0; !look.HasAnswered(); waited += kAttachLookMilliseconds) {
    if (!process.IsAlive()) {
      return absl::UnavailableError(absl::StrCat("process ", process.pid(), " has ended before it answered"));
    }
    if (waited >= most) {
      return absl::DeadlineExceededError(
          absl::StrCat("process ", process.pid(), " has run no line of Python in its main thread for ", timeout_seconds,
                       " s: it waits, or is in a call that lasts; ask again, or wait longer by --timeout"));
    }
    if (waited > 0 && waited % kNudgeAfterMilliseconds == 0) process.Nudge();
    if (signals.WaitForEnd(kAttachLookMilliseconds)) return absl::CancelledError("nothing was waited for any more");
  }
  return look.Take();
}

absl::Status Keep(const HeapLook& look, const std::string& file) {
  std::error_code error;
  std::filesystem::copy_file(look.snapshot(), file, std::filesystem::copy_options::overwrite_existing, error);
  return error ? absl::UnavailableError(absl::StrCat(file, ": ", error.message())) : absl::OkStatus();
}

absl::StatusOr<answers::AskedNames> TakeLook(PythonProcess& process, const AttachFlags& flags,
                                             const std::string& python_folder, const WatchScreen& signals) {
  const absl::StatusOr<HeapLook> look = HeapLook::Begin(process, flags.look, python_folder);
  if (!look.ok()) return look.status();
  if (absl::Status status = WaitForLook(process, *look, flags.timeout_seconds, signals); !status.ok()) return status;
  if (!flags.save.empty()) {
    if (absl::Status status = Keep(*look, flags.save); !status.ok()) return status;
  }
  return answers::ReadNames(look->snapshot());
}

int RunAttach(const AttachFlags& flags) {
  const std::optional<double> interval = SecondsOf(flags.watch);
  if (!flags.watch.empty() && !interval.has_value()) {
    return Fail(kUsage, absl::InvalidArgumentError(
                            absl::StrCat("--watch: \"", flags.watch, "\" is no time between two looks, such as 60s")));
  }
  absl::StatusOr<PythonProcess> process = PythonProcess::Find(flags.pid);
  if (!process.ok()) return Fail(kUnreadable, process.status());
  const absl::StatusOr<std::string> python_folder = FindPythonFolder();
  if (!python_folder.ok()) return Fail(kUnreadable, python_folder.status());
  const WatchScreen signals(/*draws=*/false);
  std::optional<answers::AskedNames> before;
  do {
    absl::StatusOr<answers::AskedNames> names = TakeLook(*process, flags, *python_folder, signals);
    if (!names.ok()) return Fail(absl::IsCancelled(names.status()) ? kOk : kUnreadable, names.status());
    const std::string text = before.has_value() ? report::GrowthBetween(*before, *names)
                                                : report::ToText(process->pid(), *names, flags.save);
    if (!Print(text)) return kUnreadable;
    before = *std::move(names);
  } while (interval.has_value() && !signals.WaitForEnd(static_cast<int>(*interval * 1000)));
  return kOk;
}

}  // namespace

void AddAttach(CommandLine& line) {
  Command app =
      line.AddCommand("attach", "who holds the memory of a PyTorch program that runs, however it was started");
  app.Example("ashlar attach 4242 --watch 60s");
  auto flags = std::make_shared<AttachFlags>();
  app.Add("pid", flags->pid, "the number of the process, or of its launcher").Required().Between(1, INT32_MAX);
  app.Add("--watch", flags->watch, "looks again after this time, and prints what has grown, by name; Ctrl-C ends it")
      .Takes("60s");
  app.Add("--save", flags->save, "keeps the snapshot of the newest look, for ashlar explain").Takes("FILE");
  app.Add("--seconds", flags->look.seconds,
          "the most that a look at the names may take; the program waits (default 10)");
  app.Add("--timeout", flags->timeout_seconds,
          "how long the program's next line of Python is waited for, in seconds (default 30)");
  app.Add("--redact", flags->look.redacts, "v1 and file2.py in the place of the program's names");
  app.OnRun([flags] { return RunAttach(*flags); });
}

}  // namespace ashlar::cli
