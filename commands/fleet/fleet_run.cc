#include "commands/fleet/fleet_run.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "allocator/base/check.h"
#include "allocator/base/units.h"
#include "commands/fleet/files.h"
#include "commands/fleet/journal.h"
#include "commands/fleet/link.h"
#include "commands/fleet/places.h"
#include "commands/fleet/worker.h"
#include "commands/shared/fleet_names.h"

namespace ashlar::fleet {
namespace {

constexpr std::size_t kMostSkippedTold = 12;

struct Task {
  FileStamp file;
  std::size_t process = 0;
};

// The path last, and as it is: a name may have any bytes.
std::string TaskText(const Task& task) {
  return absl::StrCat(task.file.bytes, " ", task.file.mtime_ns, " ", task.process, " ", task.file.path);
}

// Of what TaskText made.
Task ReadTask(const std::string& text) {
  Task out;
  const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits(' ', 3));
  ASHLAR_CHECK(parts.size() == 4 && absl::SimpleAtoi(parts[0], &out.file.bytes) &&
               absl::SimpleAtoi(parts[1], &out.file.mtime_ns) && absl::SimpleAtoi(parts[2], &out.process));
  out.file.path = parts[3];
  return out;
}

// In the worker. What cannot be kept is told, and counts all the same.
class RankWork {
 public:
  explicit RankWork(const FleetRun& run) : run_(run) {}

  std::string operator()(const std::string& task) {
    const auto [file, process] = ReadTask(task);
    FleetJournal* journal = JournalOf(process);
    if (journal != nullptr) Told(journal->Begin(file));
    std::string out = WriteRank(run_.summarize(file.path));
    if (journal != nullptr) Told(journal->Done(file, out));
    return out;
  }

 private:
  FleetJournal* JournalOf(std::size_t process) {
    if (run_.results.empty() || is_broken_) return nullptr;
    if (journal_ == nullptr) {
      absl::StatusOr<FleetJournal> opened = FleetJournal::Open(run_.results, process, run_.settings);
      Told(opened.status());
      if (opened.ok()) journal_ = std::make_shared<FleetJournal>(*std::move(opened));
    }
    return journal_.get();
  }

  void Told(const absl::Status& status) {
    if (status.ok() || is_broken_) return;
    is_broken_ = true;
    run_.tell(absl::StrCat("--results: ", status.message()));
  }

  const FleetRun& run_;
  std::shared_ptr<FleetJournal> journal_;  // shared: a Work can be copied
  bool is_broken_ = false;
};

// In the process that shares out.
class Manager {
 public:
  explicit Manager(const FleetRun& run) : run_(run) {}

  absl::Status Prepare() {
    absl::StatusOr<FileListing> listing = ListFiles(run_.inputs);
    if (!listing.ok()) return listing.status();
    files_ = std::move(listing->files);
    results_.resize(files_.size());
    for (std::size_t i = 0; i < listing->skipped.size() && i < kMostSkippedTold; ++i) {
      run_.tell(absl::StrCat("left out: ", listing->skipped[i]));
    }
    if (listing->skipped.size() > kMostSkippedTold) {
      run_.tell(
          absl::StrCat("left out: ", FormatCount(listing->skipped.size() - kMostSkippedTold), " more like these"));
    }
    if (listing->left_out > 0) {
      run_.tell(absl::StrCat(FormatCount(listing->left_out), listing->left_out == 1 ? " file" : " files",
                             " of the folders left out, which do not end as traces do: name them to have them read"));
    }
    return run_.results.empty() ? absl::OkStatus() : TakeFromJournals();
  }

  absl::Status Share(Places& places) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < files_.size(); ++i) {
      if (results_[i].empty()) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(),
                     [this](std::size_t a, std::size_t b) { return files_[a].bytes > files_[b].bytes; });
    std::size_t done = files_.size() - order.size();
    run_.progress(done, files_.size());
    ShareEvents events;
    events.text = [&](std::size_t task, std::size_t place) { return TaskText({files_[order[task]], place}); };
    events.done = [&](std::size_t task, const std::string& result) {
      results_[order[task]] = result;
      run_.progress(++done, files_.size());
    };
    events.lost = [&](std::size_t task, std::size_t place, const std::string& how, bool is_given_up) {
      const std::string& path = files_[order[task]].path;
      run_.tell(absl::StrCat("process ", place, " was lost while it read ", path, ": ", how,
                             is_given_up ? "; the file is given up" : "; the file is read again"));
      if (!is_given_up) return;
      results_[order[task]] =
          WriteRank(absl::UnavailableError(absl::StrCat("the process that read it was lost twice: ", how)));
      run_.progress(++done, files_.size());
    };
    return ShareOut(order.size(), places, events);
  }

  absl::StatusOr<answers::FleetAnswer> Reduce() const {
    std::vector<std::string> paths;
    for (const FileStamp& file : files_) paths.push_back(file.path);
    answers::RankNames names = answers::NameRanks(paths);
    std::vector<answers::FleetMember> members;
    for (std::size_t i = 0; i < files_.size(); ++i) {
      answers::FleetMember member{.path = files_[i].path, .file_bytes = files_[i].bytes, .rank = names.ranks[i]};
      absl::StatusOr<RankResult> result = ReadRank(results_[i]);
      if (!result.ok()) return absl::InternalError(absl::StrCat(member.path, ": ", result.status().message()));
      if (result->ok())
        member.summary = **std::move(result);
      else
        member.error = std::string(result->status().message());
      members.push_back(std::move(member));
    }
    return answers::AnswerFleet(std::move(members), std::move(names.assumed));
  }

 private:
  absl::Status TakeFromJournals() {
    const absl::StatusOr<JournalEntries> before = ReadJournals(run_.results, run_.settings);
    if (!before.ok())
      return absl::Status(before.status().code(), absl::StrCat("--results: ", before.status().message()));
    std::size_t taken = 0;
    for (std::size_t i = 0; i < files_.size(); ++i) {
      std::error_code error;
      FileStamp real = files_[i];
      real.path = std::filesystem::weakly_canonical(real.path, error).string();
      const auto found = before->done.find(real);
      if (found == before->done.end()) continue;
      // What made an error may be gone by now: rights, a disk, too many open files.
      const absl::StatusOr<RankResult> result = ReadRank(found->second);
      if (!result.ok() || !result->ok()) continue;
      results_[i] = found->second;
      ++taken;
    }
    for (const HeldFile& held : before->held) {
      run_.tell(absl::StrCat("a process of an earlier run was lost while it read ", held.path, " (", held.journal,
                             " in ", run_.results, ")"));
    }
    if (taken > 0) {
      run_.tell(absl::StrCat(FormatCount(taken), " of ", FormatCount(files_.size()), " files were done before, in ",
                             run_.results));
    }
    return absl::OkStatus();
  }

  const FleetRun& run_;
  std::vector<FileStamp> files_;
  std::vector<std::string> results_;  // as WriteRank writes them; empty: not yet
};

absl::StatusOr<std::vector<Worker>> OpenWorkers(const FleetRun& run) {
  std::vector<Worker> out;
  out.reserve(run.processes);
  for (std::size_t i = 0; i < run.processes; ++i) {
    absl::StatusOr<Worker> worker = Worker::Open(RankWork(run));
    if (!worker.ok()) return worker.status();
    out.push_back(*std::move(worker));
  }
  return out;
}

absl::StatusOr<std::optional<answers::FleetAnswer>> Answered(const FleetRun& run, Places& places) {
  Manager manager(run);
  absl::Status status = manager.Prepare();
  if (status.ok()) status = manager.Share(places);
  // The others of the job end whatever came of it.
  status.Update(places.Close());
  if (!status.ok()) return status;
  absl::StatusOr<answers::FleetAnswer> answer = manager.Reduce();
  if (!answer.ok()) return answer.status();
  return *std::move(answer);
}

}  // namespace

absl::StatusOr<std::optional<answers::FleetAnswer>> RunFleet(const FleetRun& run) {
  const absl::StatusOr<std::vector<Worker>> workers = OpenWorkers(run);
  if (!workers.ok()) return workers.status();
  if (run.mpi_module.empty()) {
    WorkerPlaces places(*workers);
    return Answered(run, places);
  }
  absl::StatusOr<std::unique_ptr<Link>> link = JoinByMpi(run.mpi_module);
  if (!link.ok()) return link.status();
  if (run.launched > 0 && (*link)->size() != run.launched) {
    const int joined = (*link)->size();
    (*link)->Close().IgnoreError();
    return absl::FailedPreconditionError(absl::StrCat(
        "the launcher started ", run.launched, " processes, and MPI joined ", joined, " of them: ", run.mpi_module,
        " is built with another MPI than the launcher's; take mpirun or srun of that MPI, "
        "or --mpi off in one process"));
  }
  if ((*link)->rank() > 0) {
    if (absl::Status status = Relay(*workers, **link); !status.ok()) return status;
    return std::nullopt;
  }
  JobPlaces places(*workers, **link);
  return Answered(run, places);
}

}  // namespace ashlar::fleet
