// Which file a process records into: what it has open says so.
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "allocator/trace/codec.h"
#include "analyzer/answers/watch.h"
#include "analyzer/readers/native/native_log.h"

namespace ashlar::answers {
namespace {

bool IsRecordedFile(const std::string& path) {
  struct stat about {};
  if (stat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) return false;
  std::ifstream in(path, std::ios::binary);
  std::array<char, 64> bytes{};
  in.read(bytes.data(), bytes.size());
  const absl::string_view begin(bytes.data(), static_cast<std::size_t>(in.gcount()));
  return trace::IsRecording(begin) || readers::IsNativeLog(begin);
}

std::string MappedFile(const std::string& folder) {
  std::ifstream maps(folder + "/maps");
  std::string last;
  for (std::string line; std::getline(maps, line);) {
    const std::size_t at = line.find('/');
    if (at != std::string::npos && line.compare(at, std::string::npos, last) != 0 && IsRecordedFile(line.substr(at))) {
      last = line.substr(at);
    }
  }
  return last;
}

}  // namespace

absl::StatusOr<std::string> RecordedFileOf(std::int64_t pid) {
  const std::string folder = absl::StrCat("/proc/", pid);
  std::error_code error;
  if (!std::filesystem::exists(folder, error)) return absl::NotFoundError(absl::StrCat("there is no process ", pid));
  std::string found;
  std::int64_t number_of_found = -1;
  std::filesystem::directory_iterator descriptors(folder + "/fd", error);
  if (error) {
    return absl::PermissionDeniedError(
        absl::StrCat("process ", pid, ": its open files cannot be seen (", error.message(), "): give the file's name"));
  }
  for (const auto& entry : descriptors) {
    const std::filesystem::path target = std::filesystem::read_symlink(entry.path(), error);
    const std::int64_t number = std::stoll(entry.path().filename().string());
    if (error || number < number_of_found || !IsRecordedFile(target.string())) continue;
    found = target.string();
    number_of_found = number;
  }
  if (found.empty()) found = MappedFile(folder);
  if (!found.empty()) return found;
  return absl::NotFoundError(
      absl::StrCat("process ", pid,
                   " records into no file: give it a Recorder (docs/library/recorder.md), or start it under ashlar "
                   "record; the history of a PyTorch program is written as it ends"));
}

}  // namespace ashlar::answers
