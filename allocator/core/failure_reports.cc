#include "allocator/core/failure_reports.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "allocator/core/output_file.h"
#include "allocator/core/state.h"
#include "allocator/device/device.h"
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

FailureReports::FailureReports(const Ledger& ledger, const Limits& limits, const Pools& pools)
    : ledger_(ledger), limits_(limits), pools_(pools), fork_count_(device::ForkCount()) {}

absl::Status FailureReports::OutOfMemory(const policy::Decision& decision, const device::MemoryInfo& info,
                                         bool is_rejected) const {
  FailedAllocation failed{decision.request_bytes, decision.rounded_bytes, decision.segment_bytes, decision.stream,
                          decision.pool->id};
  failed.device_free_bytes = info.free_bytes;
  failed.device_total_bytes = info.total_bytes;
  failed.limit_bytes = limits_.bytes();
  failed.takes_pages = ledger_.heap().TakesPages(*decision.pool);
  failed.is_rejected = is_rejected;
  std::string text = OomMessage(failed, ledger_.heap().reserved_bytes());
  if (pools_.IsCapturing()) text += "; a graph is being captured: nothing could be waited for or returned";
  if (!is_wanted_) return absl::ResourceExhaustedError(text);
  OomReport report = MakeOomReport(failed, AwakeSegmentsOf(ledger_.heap()), ledger_.options());
  for (HolePin& pin : report.pins) {
    if (ledger_.sink() != nullptr) pin.place = ledger_.sink()->PlaceOf(pin.address);
  }
  for (const std::string& line : OomLines(report)) absl::StrAppend(&text, "\n", line);
  const auto write = [&](const std::string& path) { return Write(failed, path); };
  if (const auto line = DumpOom(write); line.has_value()) absl::StrAppend(&text, "\n", *line);
  return absl::ResourceExhaustedError(text);
}

// What a ring kept has the request as its last event; but one that was rejected is no event.
absl::Status FailureReports::Write(const FailedAllocation& failed, const std::string& path) const {
  if (ledger_.sink() != nullptr && !failed.is_rejected) {
    if (const auto kept = ledger_.sink()->WriteKept(path); kept.has_value()) return *kept;
  }
  return WriteFailedState(RecordedStateOf(ledger_, limits_, AwakeSegmentsOf(ledger_.heap())), failed, path);
}

bool FailureReports::WantsLeaks() const {
  return is_wanted_ && ledger_.options().report_leaks && fork_count_ == device::ForkCount();
}

void FailureReports::TellNoPlannedSegment(std::uint64_t bytes) const {
  if (!is_wanted_) return;
  std::fprintf(stderr, "ashlar: the device has no %s for the plan's segments: goes on without the plan\n",
               FormatBytes(bytes).c_str());
}

// Which network cards and libraries reach such memory at full speed is theirs to say; that some do not, and tell
// nobody, was seen: github.com/ai-dynamo/nixl/issues/1754, 200 GB/s against 0.3.
void FailureReports::TellExpandableRegistered(std::uint64_t bytes) {
  if (!is_wanted_ || has_told_registered_) return;
  has_told_registered_ = true;
  std::fprintf(
      stderr,
      "ashlar: %s of an expandable segment were registered: some network cards reach such memory slowly, and do "
      "not say so; measure the transfer, or allocate what is registered with expandable_segments:False\n",
      FormatBytes(bytes).c_str());
}

void FailureReports::TellLiveBlocks() const {
  const std::int64_t blocks = ledger_.stats().allocation.all().current;
  if (blocks == 0) return;
  const auto bytes = static_cast<std::uint64_t>(ledger_.stats().allocated_bytes.all().current);
  std::fprintf(stderr,
               "ashlar: an allocator ended with %lld live block%s, %s, not freed; report_leaks:False hides this\n",
               static_cast<long long>(blocks), blocks == 1 ? "" : "s", FormatBytes(bytes).c_str());
}

}  // namespace ashlar::core
