#include "analyzer/cli/launch_keep.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace ashlar::cli {
namespace {

namespace fs = std::filesystem;

absl::Status Copy(const std::string& from, const fs::path& to) {
  std::error_code error;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot write ", to.string(), ": ", error.message()));
}

// Each file and its name in a folder.
std::vector<std::pair<std::string, std::string>> FilesOf(const RunResults& results) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const ProcessRun& run : results.runs) {
    const std::string who = run.rank.has_value() ? absl::StrCat("rank", *run.rank) : absl::StrCat(run.pid);
    if (!run.history.empty()) out.emplace_back(run.history, absl::StrCat("history-", who, ".pickle"));
    for (std::size_t i = 0; i < run.failures.size(); ++i) {
      out.emplace_back(run.failures[i], absl::StrCat("oom-", who, "-", i + 1, ".pickle"));
    }
  }
  return out;
}

}  // namespace

absl::StatusOr<std::string> KeepResults(const RunResults& results, const std::string& to) {
  std::vector<const ProcessRun*> recorded;
  for (const ProcessRun& run : results.runs) {
    if (!run.history.empty() || !run.failures.empty()) recorded.push_back(&run);
  }
  if (recorded.empty()) {
    return absl::NotFoundError("there is no history to keep: only Python programs with PyTorch are recorded yet");
  }
  std::error_code error;
  if (recorded.size() == 1 && !absl::EndsWith(to, "/") && !fs::is_directory(to, error)) {
    const ProcessRun& run = *recorded.front();
    if (absl::Status status = Copy(run.history.empty() ? run.failures.back() : run.history, to); !status.ok()) {
      return status;
    }
    return to;
  }
  fs::create_directories(to, error);
  if (error) return absl::UnavailableError(absl::StrCat("cannot make the folder ", to, ": ", error.message()));
  for (const auto& [from, name] : FilesOf(results)) {
    if (absl::Status status = Copy(from, fs::path(to) / name); !status.ok()) return status;
  }
  return to;
}

}  // namespace ashlar::cli
