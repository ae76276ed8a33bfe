// Who holds the memory of a PyTorch program that runs now, by name: its recorder is asked by the signal that it
// answers. `ashlar record` and `ashlar dry-run` put it into the program; it writes the program's snapshot beside its
// other files (docs/guide/watch.md).
//
//   absl::StatusOr<AskedProcess> process = AskedProcess::Find(pid);
//   while (!process->HasAnswered()) Wait();
//   absl::StatusOr<AskedNames> names = ReadNames(process->snapshot());
#ifndef ASHLAR_COMMANDS_WATCH_ASKED_NAMES_H_
#define ASHLAR_COMMANDS_WATCH_ASKED_NAMES_H_

#include <cstdint>
#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "analyzer/analyses/holders/held_by_name.h"

namespace ashlar::answers {

class AskedProcess {
 public:
  // The process, or the first below it whose recorder answers: a launcher is taken for its program. FailedPrecondition
  // where none does; a process is never sent a signal that it does not wait for.
  static absl::StatusOr<AskedProcess> Find(std::int64_t pid);

  std::int64_t pid() const { return pid_; }
  const std::string& snapshot() const { return snapshot_; }
  absl::Status Ask();
  // Since it was asked.
  bool HasAnswered() const;
  bool IsAlive() const;

 private:
  AskedProcess(std::int64_t pid, std::string snapshot) : pid_(pid), snapshot_(std::move(snapshot)) {}

  std::int64_t pid_;
  std::string snapshot_;
  std::filesystem::file_time_type before_;
};

struct AskedNames {
  analyses::HeldByName held;
  double age_seconds = 0;  // of the snapshot
};

absl::StatusOr<AskedNames> ReadNames(const std::string& snapshot);

}  // namespace ashlar::answers

namespace ashlar::report {

// WHO HOLDS IT, how old that is, and the file where more of it is told, if there is one.
std::string ToText(std::int64_t pid, const answers::AskedNames& names, const std::string& snapshot);

// What has grown since an earlier look at the same process, by name, most first.
std::string GrowthBetween(const answers::AskedNames& before, const answers::AskedNames& now);

}  // namespace ashlar::report

#endif  // ASHLAR_COMMANDS_WATCH_ASKED_NAMES_H_
