// The memory of a training or inference run before it starts: the model's parameters and what stands out among them,
// what weights, gradients and optimizer states take, and, where there is a program for the model, its dry run.
//
//   absl::StatusOr<Model> model = ReadModel(bytes, {});
//   absl::StatusOr<Estimate> estimate = EstimateMemory(*model, {.run = {.batch = 4}, .device = "V100-16GB"});
#ifndef ASHLAR_ESTIMATOR_ESTIMATE_H_
#define ASHLAR_ESTIMATOR_ESTIMATE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "estimator/batching.h"
#include "estimator/dry_run.h"
#include "estimator/model.h"
#include "estimator/model_states.h"

namespace ashlar::estimate {

// An epoch's steps that are run where nobody says how many.
inline constexpr std::int64_t kMostEpochSteps = 20;

struct EstimateOptions {
  DryRunOptions run = {};                            // its capacity and gpu follow from what is below
  std::optional<std::int64_t> tokens = {};           // a sample; nullopt: the most the model takes, 512 at most
  std::optional<Lengths> lengths = {};               // of samples that are not all of `tokens`; cut to them where given
  Batching batching = Batching::kDynamic;            // of lengths
  std::uint64_t seed = 0;                            // of the shuffle
  bool runs_an_epoch = false;                        // run.steps: an epoch's, kMostEpochSteps at most
  std::string device = {};                           // of the table of devices
  std::optional<std::uint64_t> capacity_bytes = {};  // of the whole device; in place of the table's
  std::string capacity_flag = "--capacity";          // where that is from
  std::optional<std::uint64_t> context_bytes = {};   // of the CUDA context; in place of the table's
  std::string gpu = {};                              // whose library buffers; in place of the device's
  RunObserver* observer = nullptr;                   // of the run with ascending addresses, where there is one
};

// The parameters of one layer, in the model's order.
struct LayerSum {
  std::string name;
  std::int64_t parameters = 0;
  std::int64_t tensors = 0;
};

// A tensor that holds a fifth of all parameters or more.
struct Outlier {
  std::string name;
  std::vector<std::int64_t> sizes;
  std::int64_t parameters = 0;
  bool is_embedding = false;
  // Of an embedding: all parameters with as many rows, it included, since they grow with it.
  std::int64_t parameters_of_its_rows = 0;
  // The column that most of its rows come from, where columns are known, and the model without that column.
  std::optional<Column> column = {};
  std::int64_t parameters_without_column = 0;
};

// What the device may show at the peak, and why it is not one number.
struct ByteInterval {
  std::uint64_t least_bytes = 0;
  std::uint64_t most_bytes = 0;
  std::string reason;
  bool operator==(const ByteInterval&) const = default;
};

struct Estimate {
  Model model;
  DryRunOptions run;
  std::optional<Lengths> lengths = {};
  Batching batching = Batching::kDynamic;
  std::uint64_t seed = 0;
  std::int64_t epoch_steps = 0;  // of the lengths
  std::vector<LayerSum> layers;
  std::vector<Outlier> outliers;
  std::vector<ModelStates> states;  // what was asked for first, then others to compare with
  std::uint64_t rule_of_thumb_bytes = 0;

  std::string device;                                // empty: none was named
  std::optional<std::uint64_t> capacity_bytes = {};  // of the whole device
  std::string capacity_source;
  std::uint64_t context_bytes = 0;
  std::string context_source;
  // What it may be instead, where it is another device's: nullopt for a number of this device or from --context.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> context_spread = {};
  std::uint64_t driver_bytes = 0;  // libraries' workspaces that the driver gives, outside context and allocator

  std::string no_dry_run;                // why there is none; then the runs are missing
  std::optional<DryRun> ascending = {};  // segment addresses in either order: a driver's order is not known before
  std::optional<DryRun> descending = {};

  // What the device shows at the peak of a run, or when a request failed.
  std::uint64_t DeviceBytes(const DryRun& of) const { return context_bytes + driver_bytes + of.reserved_bytes; }
  // Of both runs; nullopt without them, or where one fails.
  std::optional<ByteInterval> DeviceInterval() const;
};

std::vector<LayerSum> SumLayers(const Model& model);
std::vector<Outlier> FindOutliers(const Model& model);

// Of the model described again with the run's switches. InvalidArgument names the flag.
absl::StatusOr<Estimate> EstimateMemory(const Model& described, const EstimateOptions& options);

}  // namespace ashlar::estimate

#endif  // ASHLAR_ESTIMATOR_ESTIMATE_H_
