// Tells a program that a request has failed for good, or that the allocator ends with live blocks.
//
//   FailureReports reports(ledger, limits, pools);
//   return reports.OutOfMemory(plan, device.GetMemoryInfo(), /*is_rejected=*/false);
//
// The error's first line is the message by itself; behind it, at most 11 lines say where every byte is (oom_report.h).
// The device is not called. Thread rule: within the allocator's exclusive section,
// but for WantsLeaks, which the destructor asks before.
#ifndef ASHLAR_ALLOCATOR_CORE_FAILURE_REPORTS_H_
#define ASHLAR_ALLOCATOR_CORE_FAILURE_REPORTS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "allocator/core/ledger.h"
#include "allocator/core/limits.h"
#include "allocator/core/oom_report.h"
#include "allocator/core/pools.h"
#include "allocator/device/device.h"
#include "allocator/policy/heap.h"

namespace ashlar::core {

class FailureReports {
 public:
  // All outlive this.
  FailureReports(const Ledger& ledger, const Limits& limits, const Pools& pools);

  // Whether there is more than the message, and live blocks are told.
  void SetWanted(bool is_wanted) { is_wanted_ = is_wanted; }

  absl::Status OutOfMemory(const policy::Plan& plan, const device::MemoryInfo& info, bool is_rejected) const;

  // Whether live blocks are to be told here. Not in a forked child: the copy is not the child's to tell of.
  bool WantsLeaks() const;
  // One line on stderr if there are live blocks.
  void TellLiveBlocks() const;
  // One line on stderr, where reports are wanted: the device has refused the arena of a plan.
  void TellNoArena(std::uint64_t bytes) const;

 private:
  absl::Status Write(const FailedAllocation& failed, const std::string& path) const;

  const Ledger& ledger_;
  const Limits& limits_;
  const Pools& pools_;
  const std::uint64_t fork_count_;  // when it was made
  bool is_wanted_ = true;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_FAILURE_REPORTS_H_
