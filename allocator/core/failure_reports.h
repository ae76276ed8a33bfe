// Tells a program that a request has failed for good, or that the allocator ends with live blocks.
//
//   FailureReports reports(ledger, limits, pools);
//   return reports.OutOfMemory(decision, device.GetMemoryInfo(), /*is_rejected=*/false);
//
// The error's first line is the message by itself; behind it, at most 11 lines say where every byte is (oom_report.h).
// The device is not called. Thread rule: within the allocator's exclusive section,
// but for WantsLeaks, which the destructor asks before.
#ifndef ASHLAR_ALLOCATOR_CORE_FAILURE_REPORTS_H_
#define ASHLAR_ALLOCATOR_CORE_FAILURE_REPORTS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "allocator/core/ledger.h"
#include "allocator/core/limits.h"
#include "allocator/core/oom_report.h"
#include "allocator/core/pools.h"
#include "allocator/device/device.h"
#include "allocator/policy/heap.h"
#include "allocator/trace/snapshot.h"

namespace ashlar::core {

// Writes the state in which a request failed, where the environment asks for it:
//
//   $ ASHLAR_OOM_DUMP=/tmp/dumps ./program
//   ...
//   state written: ashlar explain /tmp/dumps/ashlar_oom_4711_0.ashlar           the last line of the error
//
// The file is a recording (docs/library/recorder.md): the segments with every block, the settings, the request, and,
// where the allocator's sink keeps the last events (a Recorder's ring), those. A file is never overwritten; a process
// writes at most kMostOomDumps into a folder. What cannot be written is one line on stderr, and the request's own error
// is unchanged.
//
// No device is called. Threads: any; the allocator that failed stands still meanwhile, so that state and events are of
// one moment.

inline constexpr int kMostOomDumps = 8;  // a program that fails in a loop does not fill the disk
inline constexpr char kOomDumpVariable[] = "ASHLAR_OOM_DUMP";

// A recording of a state and of the one request.
absl::Status WriteFailedState(trace::Snapshot state, const FailedAllocation& failed, const std::string& path);

// Calls `write` with the path of a new, empty file in the folder that the environment names. The line that tells of it,
// for the error; nullopt where nothing was asked for, or where this process has written its share.
std::optional<std::string> DumpOom(absl::FunctionRef<absl::Status(const std::string& path)> write);

class FailureReports {
 public:
  // All outlive this.
  FailureReports(const Ledger& ledger, const Limits& limits, const Pools& pools);

  // Whether there is more than the message, and live blocks are told.
  void SetWanted(bool is_wanted) { is_wanted_ = is_wanted; }

  absl::Status OutOfMemory(const policy::Decision& decision, const device::MemoryInfo& info, bool is_rejected) const;

  // Whether live blocks are to be told here. Not in a forked child: the copy is not the child's to tell of.
  bool WantsLeaks() const;
  // One line on stderr if there are live blocks.
  void TellLiveBlocks() const;
  // One line on stderr, where reports are wanted: the device has refused the segment of a plan.
  void TellNoPlannedSegment(std::uint64_t bytes) const;
  // The same, once: so many bytes of expandable segments were registered.
  void TellExpandableRegistered(std::uint64_t bytes);

 private:
  absl::Status Write(const FailedAllocation& failed, const std::string& path) const;

  const Ledger& ledger_;
  const Limits& limits_;
  const Pools& pools_;
  const std::uint64_t fork_count_;  // when it was made
  bool is_wanted_ = true;
  bool has_told_registered_ = false;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_FAILURE_REPORTS_H_
