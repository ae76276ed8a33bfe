// Finds the cheapest set of levers that makes a run fit, and the largest batch.
//
//   absl::StatusOr<Fit> fit = FindFit(estimate, 0);
//   fit->cheapest->flags;    // {"--precision bf16", "--checkpointing"}
//
// The cheapest set is the one with the lowest sum of prices (levers.h), found by dry runs in ascending order of that
// sum; of sets that cost alike the one with fewer levers, then the one of levers higher in the table. Both orders of
// segment addresses must fit.
#ifndef ASHLAR_ESTIMATOR_LEVERS_FIT_H_
#define ASHLAR_ESTIMATOR_LEVERS_FIT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "estimator/levers/levers.h"

namespace ashlar::estimate {

struct FitOptions {
  std::size_t threads = 0;  // 0 = one a core
  // After each dry run, with how many are done; from one thread at a time.
  std::function<void(std::size_t runs)> progress = {};
};

struct LargestBatch {
  std::int64_t batch = 0;          // 0: not even 1 fits
  std::uint64_t device_bytes = 0;  // of it
  std::uint64_t tried = 0;         // batches
  bool is_bounded = true;          // false: the largest that is tried fits
  // Batches against the order that the search takes for granted: smaller ones that fail, larger ones that fit.
  std::vector<std::int64_t> exceptions = {};
};

struct LeverSet {
  std::vector<const Lever*> levers;
  std::vector<std::string> flags;
  int price = 0;
  Measured measured;
};

struct Fit {
  std::uint64_t capacity_bytes = 0;  // of the whole device
  Measured asked;
  LargestBatch largest;                               // as asked
  std::optional<LeverSet> cheapest = {};              // nullopt: the run fits as asked, or no set does
  std::optional<LargestBatch> largest_cheapest = {};  // with that set
  std::optional<LeverSet> least = {};                 // where no set fits: the one that needs least
  std::uint64_t sets_tried = 0;
};

// FailedPrecondition where the estimate has no dry run or no capacity.
absl::StatusOr<Fit> FindFit(const Estimate& of, const FitOptions& options);

// The largest batch of the variant that fits: doubled until one fails, then halved in between; a few on either side are
// tried to see that the order holds.
absl::StatusOr<LargestBatch> FindLargestBatch(const Estimate& of, const Variant& variant, std::size_t threads);

}  // namespace ashlar::estimate

#endif  // ASHLAR_ESTIMATOR_LEVERS_FIT_H_
