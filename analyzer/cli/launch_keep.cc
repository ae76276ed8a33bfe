#include "analyzer/cli/launch_keep.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "analyzer/cli/launch_native.h"

namespace ashlar::cli {
namespace {

namespace fs = std::filesystem;

absl::Status Copy(const std::string& from, const fs::path& to) {
  std::error_code error;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot write ", to.string(), ": ", error.message()));
}

// A native program's log lives in the form that every command reads.
absl::Status Keep(const ProcessRun& run, const std::string& from, const fs::path& to) {
  return run.native.has_value() ? KeepNativeLog(from, to.string()) : Copy(from, to);
}

struct KeptFile {
  const ProcessRun* run;
  std::string from;
  std::string name;  // in a folder
};

std::vector<KeptFile> FilesOf(const RunResults& results) {
  std::vector<KeptFile> out;
  for (const ProcessRun& run : results.runs) {
    const std::string who = run.rank.has_value() ? absl::StrCat("rank", *run.rank) : absl::StrCat(run.pid);
    if (!run.history.empty()) out.push_back({&run, run.history, absl::StrCat("history-", who, EndingOf(run))});
    for (std::size_t i = 0; i < run.failures.size(); ++i) {
      out.push_back({&run, run.failures[i], absl::StrCat("oom-", who, "-", i + 1, ".pickle")});
    }
  }
  return out;
}

}  // namespace

const char* EndingOf(const ProcessRun& run) { return run.native.has_value() ? ".ashlar" : ".pickle"; }

absl::StatusOr<std::string> KeepResults(const RunResults& results, const std::string& to) {
  std::vector<const ProcessRun*> recorded;
  for (const ProcessRun& run : results.runs) {
    if (!run.history.empty() || !run.failures.empty()) recorded.push_back(&run);
  }
  if (recorded.empty()) {
    return absl::NotFoundError(
        "there is no history to keep: no process had PyTorch allocate on a device, or allocated device memory itself "
        "in a way that is recorded (docs/guide/record.md)");
  }
  std::error_code error;
  if (recorded.size() == 1 && !absl::EndsWith(to, "/") && !fs::is_directory(to, error)) {
    const ProcessRun& run = *recorded.front();
    if (absl::Status status = Keep(run, run.history.empty() ? run.failures.back() : run.history, to); !status.ok()) {
      return status;
    }
    return to;
  }
  fs::create_directories(to, error);
  if (error) return absl::UnavailableError(absl::StrCat("cannot make the folder ", to, ": ", error.message()));
  for (const KeptFile& file : FilesOf(results)) {
    if (absl::Status status = Keep(*file.run, file.from, fs::path(to) / file.name); !status.ok()) return status;
  }
  return to;
}

}  // namespace ashlar::cli
