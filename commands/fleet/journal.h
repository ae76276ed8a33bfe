// The results of a fleet as they come, in a folder: each process appends to a journal of its own, and a run reads all
// of them before it begins. So a run that was cut off goes on where it stopped, with any number of processes.
//
//   absl::StatusOr<FleetJournal> journal = FleetJournal::Open("results", 2, settings);   // results/process-2.jsonl
//   journal->Begin(file);            // a line: this process holds the file
//   journal->Done(file, result);     // a line: the result, whole or not there
//
//   absl::StatusOr<JournalEntries> before = ReadJournals("results", settings);
//   before->done.find(file);         // the same path, length, time and settings
//   before->held;                    // begun and never done: its process was lost
//
// A line is written by one call and flushed by the system; one that was cut off is passed over. Errors are one line
// with the file. One thread and one process a journal.
#ifndef ASHLAR_COMMANDS_FLEET_JOURNAL_H_
#define ASHLAR_COMMANDS_FLEET_JOURNAL_H_

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "commands/fleet/files.h"

namespace ashlar::fleet {

class FleetJournal {
 public:
  // Makes the folder where it is not there. `settings`: all that a result depends on besides the file.
  static absl::StatusOr<FleetJournal> Open(const std::string& folder, std::size_t process, const std::string& settings);

  FleetJournal(FleetJournal&& other) noexcept
      : path_(std::move(other.path_)), settings_(std::move(other.settings_)), file_(std::exchange(other.file_, -1)) {}
  FleetJournal& operator=(FleetJournal&& other) = delete;
  ~FleetJournal();

  absl::Status Begin(const FileStamp& file);
  absl::Status Done(const FileStamp& file, const std::string& result);

 private:
  FleetJournal(std::string path, std::string settings, int file)
      : path_(std::move(path)), settings_(std::move(settings)), file_(file) {}
  absl::Status Append(const std::string& line) const;

  std::string path_;
  std::string settings_;
  int file_;
};

struct HeldFile {
  std::string path;
  std::string journal;  // "process-2": whose it was
};

struct JournalEntries {
  std::map<FileStamp, std::string> done;
  std::vector<HeldFile> held;
};

// Nothing where the folder is not there. Entries of other settings, and files that changed, are none.
absl::StatusOr<JournalEntries> ReadJournals(const std::string& folder, const std::string& settings);

}  // namespace ashlar::fleet

#endif  // ASHLAR_COMMANDS_FLEET_JOURNAL_H_
