#include "commands/fleet/files.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "commands/shared/fleet_names.h"

namespace ashlar::fleet {
namespace {

namespace fs = std::filesystem;

bool EndsAsTrace(absl::string_view name) {
  absl::ConsumeSuffix(&name, ".gz");
  return std::any_of(std::begin(kTraceEndings), std::end(kTraceEndings),
                     [name](absl::string_view ending) { return absl::EndsWith(name, ending); });
}

class Lister {
 public:
  absl::Status Add(const std::string& input) {
    std::error_code error;
    if (fs::is_directory(input, error)) return AddFolder(input);
    if (fs::exists(input, error)) {
      AddFile(input);
      return absl::OkStatus();
    }
    if (input.find_first_of("*?[") != std::string::npos) return AddPattern(input);
    return absl::NotFoundError(absl::StrCat(input, ": no such file or folder"));
  }

  FileListing Finish() {
    for (const auto& [real, path] : names_) out_.files.push_back(StampOf(path));
    std::sort(out_.files.begin(), out_.files.end(),
              [](const FileStamp& a, const FileStamp& b) { return answers::NameComesBefore(a.path, b.path); });
    std::sort(out_.skipped.begin(), out_.skipped.end(), answers::NameComesBefore);
    out_.skipped.erase(std::unique(out_.skipped.begin(), out_.skipped.end()), out_.skipped.end());
    return std::move(out_);
  }

 private:
  void AddFile(const std::string& path) {
    std::error_code error;
    std::string real = fs::weakly_canonical(path, error).string();
    if (error) real = path;
    const auto [at, is_new] = names_.emplace(real, path);
    if (!is_new && IsBetterName(path, at->second, real)) at->second = path;
  }

  // Without a link first; else by the order of names, so that the order in which a folder gives them does not matter.
  static bool IsBetterName(const std::string& path, const std::string& than, const std::string& real) {
    const auto links = [&real](const std::string& name) {
      std::error_code error;
      return std::pair(fs::is_symlink(name, error), fs::absolute(name, error).lexically_normal() != real);
    };
    const auto a = links(path);
    const auto b = links(than);
    return a != b ? a < b : answers::NameComesBefore(path, than);
  }

  absl::Status AddFolder(const std::string& folder) {
    const std::uint64_t before = found_;
    if (const std::error_code error = Walk(folder); error) {
      return absl::NotFoundError(absl::StrCat(folder, ": ", error.message()));
    }
    if (found_ > before) return absl::OkStatus();
    return absl::NotFoundError(
        absl::StrCat(folder, ": no file in it ends in ", absl::StrJoin(kTraceEndings, ", "), ", with or without .gz"));
  }

  std::error_code Walk(const fs::path& folder) {
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) AddEntry(*it);
    return error;
  }

  void AddEntry(const fs::directory_entry& entry) {
    std::error_code ignored;
    const std::string path = entry.path().lexically_normal().string();
    const auto skip = [&](absl::string_view why) { out_.skipped.push_back(absl::StrCat(path, ": ", why)); };
    const bool is_link = entry.is_symlink(ignored);
    if (entry.is_directory(ignored)) {
      if (is_link) return skip("a link to a folder: name it to have it read");
      if (const std::error_code error = Walk(entry.path()); error) skip(error.message());
    } else if (!EndsAsTrace(path)) {
      ++out_.left_out;
    } else if (entry.is_regular_file(ignored)) {
      ++found_;
      AddFile(path);
    } else {
      skip(is_link && !entry.exists(ignored) ? "a link to nothing" : "no regular file: name it to have it read");
    }
  }

  absl::Status AddPattern(const std::string& pattern) {
    glob_t found = {};
    const int code = glob(pattern.c_str(), 0, nullptr, &found);
    absl::Status status =
        code == 0 ? absl::OkStatus() : absl::NotFoundError(absl::StrCat(pattern, ": matches no file"));
    for (std::size_t i = 0; code == 0 && i < found.gl_pathc; ++i) {
      const std::string path = found.gl_pathv[i];
      std::error_code error;
      if (fs::is_directory(path, error)) {
        status.Update(AddFolder(path));
      } else {
        AddFile(path);
      }
    }
    globfree(&found);
    return status;
  }

  FileListing out_;
  std::map<std::string, std::string> names_;  // of each real path the best
  std::uint64_t found_ = 0;                   // in folders, with those that were named before
};

}  // namespace

FileStamp StampOf(const std::string& path) {
  FileStamp out{path, 0, 0};
  struct stat found = {};
  if (stat(path.c_str(), &found) != 0) return out;
  out.bytes = static_cast<std::uint64_t>(found.st_size);
  out.mtime_ns = static_cast<std::int64_t>(found.st_mtim.tv_sec) * 1'000'000'000 + found.st_mtim.tv_nsec;
  return out;
}

absl::StatusOr<FileListing> ListFiles(const std::vector<std::string>& inputs) {
  Lister lister;
  for (const std::string& input : inputs) {
    if (absl::Status status = lister.Add(input); !status.ok()) return status;
  }
  return lister.Finish();
}

}  // namespace ashlar::fleet
