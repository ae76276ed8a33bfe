// The dry run of a model: its training steps or forward passes over a simulated device, every tensor allocated and
// freed as eager PyTorch does, without arithmetic, through the allocator with PyTorch's decisions.
//
//   absl::StatusOr<DryRun> run = RunDry(model, options, device::AddressOrder::kAscending);
//   run->peak_reserved_bytes;
#ifndef ASHLAR_ESTIMATOR_DRY_RUN_H_
#define ASHLAR_ESTIMATOR_DRY_RUN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/device/address_space.h"
#include "allocator/policy/options.h"
#include "estimator/model.h"
#include "estimator/model_states.h"
#include "estimator/models/transformers.h"
#include "estimator/peak_recorder.h"
#include "estimator/run_observer.h"

namespace ashlar::estimate {

// The options of a dry run: how many steps of which batches, how trained, under which framework, GPU and settings.

// One batch: its samples, all of `tokens` tokens (padded to them).
struct BatchShape {
  std::int64_t batch = 1;
  std::int64_t tokens = 1;
  std::int64_t target_tokens = 0;  // of an encoder-decoder's decoder; 0: as many
  bool is_padded = false;          // some sample is shorter: a mask says where
  std::int64_t real_tokens = 0;    // of all samples without padding; 0: not known, batch x tokens
};

struct DryRunOptions {
  bool is_training = true;
  std::int64_t steps = 3;  // optimizer steps, or forward passes; 0: the weights alone
  std::int64_t batch = 8;
  std::int64_t tokens = 512;             // a sample; not for models whose description fixes it
  std::int64_t target_tokens = 0;        // of an encoder-decoder's decoder; 0: as many
  std::vector<BatchShape> batches = {};  // one after the other, then from the first again; empty: batch x tokens each
  bool is_padded = false;                // of batch x tokens: some sample is shorter
  bool keeps_outputs = false;            // the caller's variable holds what a call returned until the next one has
  std::int64_t accumulation = 1;
  bool is_checkpointed = false;
  Precision precision = Precision::kFloat32;
  std::optional<kernels::Attention> attention = {};  // nullopt: what transformers of the torch version takes
  std::string optimizer = "adamw";
  ModelSwitches switches = {};  // the model is described again with them where it was described without
  std::string torch_version = "2.6";
  std::string transformers_version = {};             // empty: that of torch's time
  std::string gpu = "A100";                          // of kernels::GpuNamed: sizes of library buffers
  std::string conf = {};                             // as for PYTORCH_CUDA_ALLOC_CONF
  std::optional<std::uint64_t> capacity_bytes = {};  // that the allocator may have; nullopt: it never runs out
};

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
// unknown. `observer`, which may be nullptr, is told every decision (run_observer.h makes a snapshot of them).
absl::StatusOr<DryRun> RunDry(const Model& model, const DryRunOptions& options, device::AddressOrder order,
                              RunObserver* observer = nullptr);

}  // namespace ashlar::estimate

#endif  // ASHLAR_ESTIMATOR_DRY_RUN_H_
