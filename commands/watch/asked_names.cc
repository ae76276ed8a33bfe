#include "commands/watch/asked_names.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/holders/name_diff.h"
#include "analyzer/analyses/steps/steps.h"
#include "analyzer/formats/input_file.h"
#include "commands/shared/held_text.h"
#include "commands/shared/input.h"
#include "commands/shared/layout.h"
#include "commands/shared/processes.h"
#include "commands/shared/traced_run.h"

namespace ashlar::answers {
namespace {

namespace files = std::filesystem;

std::string BytesOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// Where the process's recorder puts its files: what its launcher told it (hollow/python/ashlar_hollow/settings.py).
std::string RecordFolder(const std::string& process) {
  const std::string environment = BytesOf(process + "/environ");
  for (const absl::string_view variable : {"ASHLAR_RECORD=", "ASHLAR_HOLLOW_RUN="}) {
    for (const absl::string_view one : absl::StrSplit(environment, '\0')) {
      if (absl::StartsWith(one, variable) && one.size() > variable.size()) {
        return std::string(one.substr(variable.size()));
      }
    }
  }
  return "";
}

// The recorder leaves this file where it answers SIGUSR1 with names (hollow/python/ashlar_hollow/signals.py).
std::optional<std::string> SnapshotOfOneThatAnswers(std::int64_t pid, const std::string& process) {
  const files::path folder = RecordFolder(process);
  std::error_code error;
  if (folder.empty() || !files::exists(folder / absl::StrCat("usr1-", pid), error)) return std::nullopt;
  return (folder / absl::StrCat("history-", pid, ".pickle")).string();
}

}  // namespace

absl::StatusOr<AskedProcess> AskedProcess::Find(std::int64_t pid) {
  const std::vector<std::int64_t> processes = ProcessesFrom(pid);
  if (processes.empty()) return absl::NotFoundError(absl::StrCat("there is no process ", pid));
  for (const std::int64_t one : processes) {
    if (auto snapshot = SnapshotOfOneThatAnswers(one, absl::StrCat("/proc/", one))) {
      return AskedProcess(one, *std::move(snapshot));
    }
  }
  return absl::FailedPreconditionError(
      absl::StrCat("process ", pid,
                   " cannot be asked for names: it has to run under ashlar record or ashlar dry-run, have used "
                   "PyTorch's CUDA in its "
                   "main thread, and have no handler of SIGUSR1 of its own; ashlar attach ",
                   pid, " asks any other"));
}

absl::Status AskedProcess::Ask() {
  std::error_code error;
  before_ = files::last_write_time(snapshot_, error);
  if (error) before_ = files::file_time_type::min();
  if (kill(static_cast<pid_t>(pid_), SIGUSR1) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("process ", pid_, " cannot be asked"));
}

bool AskedProcess::HasAnswered() const {
  std::error_code error;
  const files::file_time_type now = files::last_write_time(snapshot_, error);
  return !error && now != before_;
}

bool AskedProcess::IsAlive() const { return kill(static_cast<pid_t>(pid_), 0) == 0 || errno == EPERM; }

absl::StatusOr<AskedNames> ReadNames(const std::string& snapshot) {
  std::error_code error;
  const files::file_time_type written = files::last_write_time(snapshot, error);
  const absl::StatusOr<std::string> bytes = formats::ReadInput(snapshot);
  if (!bytes.ok()) return bytes.status();
  const absl::StatusOr<Input> input = LoadInput(*bytes);
  if (!input.ok()) return input.status();
  const absl::StatusOr<TracedRun> run = TraceInput(*input, {});
  if (!run.ok()) return run.status();
  if (!run->held.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat(snapshot,
                     ": the program was asked, and has taken no names: --names off, or a PyTorch that does not "
                     "say what it holds"));
  }
  const analyses::Steps steps = analyses::FindSteps(run->timeline, &run->stacks, run->annotations);
  const std::chrono::duration<double> age = files::file_time_type::clock::now() - written;
  const trace::Snapshot& names = *input->snapshot();
  return AskedNames{*analyses::NameHolders(*names.holders, names, run->timeline, steps), std::max(0.0, age.count())};
}

}  // namespace ashlar::answers

namespace ashlar::report {
namespace {

constexpr std::size_t kMostGrowthRows = 8;
constexpr std::size_t kGrowthColumns = 32;  // before the name
constexpr std::size_t kGrowthWidth = 104;

}  // namespace

std::string ToText(std::int64_t pid, const answers::AskedNames& names, const std::string& snapshot) {
  std::string out = absl::StrFormat("process %d, %.1f s ago\n", pid, names.age_seconds);
  AppendHeld(names.held, out);
  if (!snapshot.empty()) {
    absl::StrAppend(&out, "\nashlar explain ", Printable(snapshot), " tells more, while the program runs\n");
  }
  return out;
}

std::string GrowthBetween(const answers::AskedNames& before, const answers::AskedNames& now) {
  std::string out =
      absl::StrFormat("\n%s live, %s since the look before\n", FormatBytes(now.held.live_bytes),
                      FormatSignedBytes(static_cast<std::int64_t>(now.held.live_bytes - before.held.live_bytes)));
  std::size_t shown = 0;
  for (const analyses::NameDiffRow& row : analyses::DiffNames(before.held, now.held)) {
    if (row.GrownBytes() == 0 || shown++ == kMostGrowthRows) break;
    out += absl::StrFormat("  %12s  to %11s  %s\n", FormatSignedBytes(row.GrownBytes()), FormatBytes(row.b.bytes),
                           MiddleCut(HolderText(row.holder), LabelRoom(kGrowthColumns, kGrowthWidth)));
  }
  if (shown == 0) out += "  nothing has grown\n";
  return out;
}

}  // namespace ashlar::report
