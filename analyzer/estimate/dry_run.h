// The dry run of a model: its training steps or forward passes over a simulated device, every tensor allocated and
// freed as eager PyTorch does, without arithmetic, through the allocator with PyTorch's decisions.
//
//   absl::StatusOr<DryRun> run = RunDry(model, options, device::AddressOrder::kAscending);
//   run->peak_reserved_bytes;
#ifndef ASHLAR_ANALYZER_ESTIMATE_DRY_RUN_H_
#define ASHLAR_ANALYZER_ESTIMATE_DRY_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/device/address_space.h"
#include "allocator/policy/options.h"
#include "analyzer/estimate/dry_run_options.h"
#include "analyzer/estimate/model.h"
#include "analyzer/estimate/peak_recorder.h"
#include "analyzer/estimate/run_observer.h"

namespace ashlar::estimate {

// Requested bytes alive at one moment, by what they are for. They sum to what was requested and not freed.
struct MomentParts {
  std::uint64_t weights = 0;
  std::uint64_t gradients = 0;
  std::uint64_t optimizer = 0;
  std::uint64_t saved_activations = 0;  // made in a forward pass and kept for backward
  std::uint64_t temporaries = 0;        // other activations: gradients of them, recomputed ones, scratch of kernels
  std::uint64_t batch = 0;
  std::uint64_t libraries = 0;  // workspaces kept for good
  std::uint64_t total() const {
    return weights + gradients + optimizer + saved_activations + temporaries + batch + libraries;
  }
};

// One of a step's phases at its greatest need; of "between steps" the end, what a step leaves.
struct PhaseParts {
  std::int64_t step = 0;  // from 1; 0: before the first
  std::string phase;
  MomentParts parts;
  std::uint64_t reserved_bytes = 0;
};

struct DryRun {
  bool fits = true;                // false: a request failed, and the run ended there
  PeakMoment moment;               // of the greatest need; of the failed request where one failed
  MomentParts parts;               // then
  std::vector<PhaseParts> phases;  // in the order in which they began
  std::uint64_t failed_bytes = 0;  // the request that failed
  std::uint64_t peak_requested_bytes = 0;
  std::uint64_t peak_allocated_bytes = 0;
  std::uint64_t peak_reserved_bytes = 0;
  std::uint64_t reserved_bytes = 0;  // at the peak; when a request failed, what was reserved then
  std::uint64_t requests = 0;
  std::int64_t parameters = 0;  // of the program that ran
};

// Whose rules the allocator of a version of PyTorch follows.
policy::Compat CompatOf(const std::string& torch_version);

// FailedPrecondition with WhyNoProgram (program.h); InvalidArgument, naming the flag, for a version, a GPU or settings
// unknown. `observer`, which may be nullptr, is told every decision (run_capture.h makes a snapshot of them).
absl::StatusOr<DryRun> RunDry(const Model& model, const DryRunOptions& options, device::AddressOrder order,
                              RunObserver* observer = nullptr);

}  // namespace ashlar::estimate

#endif  // ASHLAR_ANALYZER_ESTIMATE_DRY_RUN_H_
