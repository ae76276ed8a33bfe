#include "analyzer/fleet/files.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "analyzer/answers/fleet_names.h"

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
    if (fs::exists(input, error)) return AddFile(input);
    if (input.find_first_of("*?[") != std::string::npos) return AddPattern(input);
    return absl::NotFoundError(absl::StrCat(input, ": no such file or folder"));
  }

  FileListing Finish() {
    std::sort(out_.files.begin(), out_.files.end(),
              [](const FileStamp& a, const FileStamp& b) { return answers::NameComesBefore(a.path, b.path); });
    return std::move(out_);
  }

 private:
  // A file that is named twice counts once.
  absl::Status AddFile(const std::string& path) {
    std::error_code error;
    const std::string real = fs::weakly_canonical(path, error).string();
    if (seen_.insert(error ? path : real).second) out_.files.push_back(StampOf(path));
    return absl::OkStatus();
  }

  absl::Status AddFolder(const std::string& folder) {
    std::error_code error;
    const std::size_t before = out_.files.size();
    for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      std::error_code ignored;
      if (!it->is_regular_file(ignored)) continue;
      if (EndsAsTrace(it->path().string())) {
        if (absl::Status status = AddFile(it->path().lexically_normal().string()); !status.ok()) return status;
      } else {
        ++out_.left_out;
      }
    }
    if (error) return absl::NotFoundError(absl::StrCat(folder, ": ", error.message()));
    if (out_.files.size() > before) return absl::OkStatus();
    return absl::NotFoundError(
        absl::StrCat(folder, ": no file in it ends in ", absl::StrJoin(kTraceEndings, ", "), ", with or without .gz"));
  }

  absl::Status AddPattern(const std::string& pattern) {
    glob_t found = {};
    const int code = glob(pattern.c_str(), 0, nullptr, &found);
    absl::Status status =
        code == 0 ? absl::OkStatus() : absl::NotFoundError(absl::StrCat(pattern, ": matches no file"));
    for (std::size_t i = 0; code == 0 && i < found.gl_pathc; ++i) {
      const std::string path = found.gl_pathv[i];
      std::error_code error;
      status.Update(fs::is_directory(path, error) ? AddFolder(path) : AddFile(path));
    }
    globfree(&found);
    return status;
  }

  FileListing out_;
  std::set<std::string> seen_;
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
