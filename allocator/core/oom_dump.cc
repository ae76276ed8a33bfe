#include "allocator/core/oom_dump.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "allocator/core/output_file.h"
#include "allocator/trace/codec.h"

namespace ashlar::core {
namespace {

// Whether the folder gets one more.
bool TakeShare(const std::string& folder) {
  static std::mutex mutex;
  static std::map<std::string, int>* const dumps = new std::map<std::string, int>;  // also while the process ends
  const std::lock_guard<std::mutex> lock(mutex);
  return ++(*dumps)[folder] <= kMostOomDumps;
}

// A new file of this process in the folder.
absl::StatusOr<std::string> NewFile(const std::string& folder) {
  static std::atomic<int> next{0};
  while (true) {
    const int number = next.fetch_add(1, std::memory_order_relaxed);
    const std::string path = absl::StrCat(folder, "/ashlar_oom_", getpid(), "_", number, ".ashlar");
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file >= 0) {
      close(file);
      return path;
    }
    if (errno != EEXIST) return absl::ErrnoToStatus(errno, absl::StrCat(path, " cannot be made"));
  }
}

}  // namespace

absl::Status WriteFailedState(trace::Snapshot state, const FailedAllocation& failed, const std::string& path) {
  trace::Event oom;
  oom.action = trace::Action::kOom;
  oom.address = failed.device_free_bytes;
  oom.size_bytes = failed.rounded_bytes;
  oom.stream = failed.stream;
  oom.pool = failed.pool;
  state.device_traces[static_cast<std::size_t>(state.recording->device)].push_back(oom);
  return ReplaceFile(path, {trace::Encode(state)});
}

std::optional<std::string> DumpOom(absl::FunctionRef<absl::Status(const std::string& path)> write) {
  const char* folder = std::getenv(kOomDumpVariable);
  if (folder == nullptr || *folder == '\0') return std::nullopt;
  if (!TakeShare(folder)) return std::nullopt;
  const absl::StatusOr<std::string> path = NewFile(folder);
  absl::Status status = path.status();
  if (status.ok()) status = write(*path);
  if (status.ok()) return absl::StrCat("state written: ashlar explain ", *path);
  if (path.ok()) unlink(path->c_str());  // a part of a file explains nothing
  std::fprintf(stderr, "ashlar: %s=%s: no state is written: %s\n", kOomDumpVariable, folder,
               std::string(status.message()).c_str());
  return absl::StrCat("no state is written: ", status.message());
}

}  // namespace ashlar::core
