// Tries the changes that people make so that a run takes less memory, each alone, as a dry run of its own.
//
//   absl::StatusOr<LeverResult> result = RunLevers(estimate, 0);
//   result->rows.front().device_bytes;    // what saves most comes first
//
// Both orders of segment addresses are run, the higher counts. The rows do not depend on the number of threads.
#ifndef ASHLAR_ESTIMATOR_PLAN_LEVERS_H_
#define ASHLAR_ESTIMATOR_PLAN_LEVERS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "analyzer/analyses/changes/program_changes.h"
#include "estimator/estimate.h"

namespace ashlar::estimate {

// Levers of one group exclude each other.
enum class LeverGroup : std::uint8_t {
  kSettings,
  kOptimizer,
  kPadding,
  kAccumulation,
  kPrecision,
  kCheckpointing,
  kEmbeddings,
  kAttention,
  kOutputs,
  kSequence,
  kModel,
};

// What a run is with levers pulled.
struct Variant {
  DryRunOptions run;
  Batching batching = Batching::kFixed;
  std::optional<Lengths> lengths = {};  // run.batches are made of them by Rebatch
};
Variant VariantOf(const Estimate& of);
// After another batch, batching or lengths.
void Rebatch(const Estimate& of, Variant& variant);

// One entry of the table: add one here, and it is tried, printed and, where its change has a price, searched by
// FindFit.
struct Lever {
  LeverGroup group;
  // Its name, and what it costs. FindFit takes the set of the lowest sum of prices; one without a price is another
  // training, and never taken.
  const analyses::ProgramChange& change;
  // Pulls it and returns the flags of `ashlar estimate` that do the same; empty: nothing to change in this run.
  std::string (*pull)(const Estimate& of, Variant& variant);
};
absl::Span<const Lever> Levers();

// What a variant takes.
struct Measured {
  std::uint64_t device_bytes = 0;  // as the device shows it, in memory without end
  std::optional<bool> fits = {};   // in both orders; nullopt: no capacity is known
};
absl::StatusOr<Measured> Measure(const Estimate& of, const Variant& variant);

struct LeverRow {
  const Lever* lever = nullptr;
  std::string flags;
  Measured measured;
  std::int64_t saved_bytes = 0;  // of device_bytes; below 0 it takes more
};

// A lever that this model or version does not have.
struct LeverSkipped {
  const Lever* lever = nullptr;
  std::string why;  // one line
};

struct LeverResult {
  Measured asked;
  std::vector<LeverRow> rows;  // most saved first
  std::vector<LeverSkipped> skipped;
};

// FailedPrecondition where the estimate has no dry run. `threads`: 0 = one a core.
absl::StatusOr<LeverResult> RunLevers(const Estimate& of, std::size_t threads);

}  // namespace ashlar::estimate

#endif  // ASHLAR_ESTIMATOR_PLAN_LEVERS_H_
