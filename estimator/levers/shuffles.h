// Measures how often a run fails when only the order of its samples changes: the first steps of an epoch for many
// shuffles, batched in each way, replayed under each setting of the allocator.
//
//   absl::StatusOr<ShuffleResult> result = RunShuffles(estimate, {.shuffles = 100});
//   result->rows[0].failed;   // of 100
//
// A shuffle's steps are run dry once for each way of batching; every setting replays the same requests. Segment
// addresses ascend. The rows do not depend on the number of threads.
#ifndef ASHLAR_ESTIMATOR_LEVERS_SHUFFLES_H_
#define ASHLAR_ESTIMATOR_LEVERS_SHUFFLES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "estimator/batching.h"
#include "estimator/estimate.h"

namespace ashlar::estimate {

struct ShuffleOptions {
  std::int64_t shuffles = 100;
  std::uint64_t seed = 0;   // shuffle i is of seed + i
  std::size_t threads = 0;  // 0 = one a core
  // After each dry run and its replays, with how many are done of how many; from one thread at a time.
  std::function<void(std::size_t done, std::size_t all)> progress = {};
};

// Of numbers in ascending order: the value that so large a share of them is not above (nearest rank).
struct Quantiles {
  std::uint64_t least = 0;
  std::uint64_t median = 0;
  std::uint64_t p95 = 0;
  std::uint64_t most = 0;
};
Quantiles QuantilesOf(std::vector<std::uint64_t> values);  // all 0 without values

// One way of batching under one setting.
struct ShuffleRow {
  Batching batching = Batching::kFixed;
  std::string conf;                           // as for PYTORCH_CUDA_ALLOC_CONF; empty: the default settings
  bool is_asked = false;                      // the batching and the settings of the estimate
  bool needs_fraction = false;                // does nothing without set_per_process_memory_fraction: replayed with 1
  std::optional<std::uint64_t> failed = {};   // shuffles in which a request failed; nullopt: capacity not known
  std::optional<Quantiles> failed_step = {};  // of those, the step in which the first one failed, from 1
  std::optional<Quantiles> reserved = {};     // peaks, in memory without end; nullopt with needs_fraction
};

// What does not depend on the settings.
struct ShuffleBatching {
  Batching batching = Batching::kFixed;
  Quantiles padded_tokens;  // the longest batch of each shuffle's steps
  Quantiles requested;      // peaks
};

struct ShuffleResult {
  std::int64_t shuffles = 0;
  std::int64_t steps = 0;        // that were run of each shuffle
  std::int64_t epoch_steps = 0;  // that an epoch has
  std::vector<ShuffleBatching> batchings;
  std::vector<ShuffleRow> rows;  // by batching, then in the order of the settings
};

// FailedPrecondition where the estimate has no dry run or no lengths.
absl::StatusOr<ShuffleResult> RunShuffles(const Estimate& of, const ShuffleOptions& options);

}  // namespace ashlar::estimate

#endif  // ASHLAR_ESTIMATOR_LEVERS_SHUFFLES_H_
