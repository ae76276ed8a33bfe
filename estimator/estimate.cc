#include "estimator/estimate.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/gpus/gpu_table.h"
#include "estimator/model.h"
#include "estimator/program.h"

namespace ashlar::estimate {
namespace {

constexpr std::int64_t kOutlierShare = 5;  // 1 / 5 of all parameters
constexpr std::int64_t kMostDefaultTokens = 512;
constexpr std::int64_t kMostSteps = 100, kMostBatch = 1'000'000;
// Before torch 2 cuBLAS takes its workspaces from the driver, one for the forward thread and one for the backward one:
// 18 MiB between them in every row measured on a V100 (docs/guide/estimate_accuracy.md).
constexpr std::uint64_t kDriverBytesTraining = 18 * kMiB, kDriverBytesInference = 9 * kMiB;

// Parameters without the categories of one column, where every tensor with a row a category shrinks.
std::int64_t WithoutColumn(const Model& model, std::int64_t rows, const Column& column) {
  std::int64_t out = 0;
  for (const ModelParameter& parameter : model.parameters) {
    const bool shrinks = !parameter.sizes.empty() && parameter.sizes[0] == rows;
    out += shrinks ? parameter.count() / rows * (rows - column.categories) : parameter.count();
  }
  return out;
}

void AddColumn(const Model& model, Outlier& out) {
  if (model.columns.empty() || !out.is_embedding) return;
  const Column& most = *std::max_element(model.columns.begin(), model.columns.end(),
                                         [](const Column& a, const Column& b) { return a.categories < b.categories; });
  out.column = most;
  out.parameters_without_column = WithoutColumn(model, out.sizes[0], most);
}

// What was asked for, then others to compare it with; the same memory under another name once.
std::vector<ModelStates> StatesOf(const Model& model, const DryRunOptions& run) {
  std::vector<ModelStates> out;
  const auto add = [&](ModelStates next) {
    for (const ModelStates& known : out) {
      if (known.weights_bytes == next.weights_bytes && known.gradients_bytes == next.gradients_bytes &&
          known.optimizer_bytes == next.optimizer_bytes) {
        return;
      }
    }
    out.push_back(std::move(next));
  };
  const std::int64_t block = kernels::FrameworkOf(run.torch_version).value_or(kernels::Framework()).optimizer_block;
  const Precision mixed = IsMixed(run.precision) ? run.precision : Precision::kFloat16Mixed;
  add(run.is_training ? TrainingStates(model, run.precision, run.optimizer, block)
                      : InferenceStates(model, run.precision));
  add(TrainingStates(model, Precision::kFloat32, "adamw"));
  add(TrainingStates(model, mixed, "adamw"));
  for (const char* optimizer : {"sgd-momentum", "adamw-8bit", "adafactor", "sgd"}) {
    add(TrainingStates(model, Precision::kFloat32, optimizer, block));
  }
  for (const Precision precision : {Precision::kFloat32, mixed}) add(InferenceStates(model, precision));
  return out;
}

// The first epoch's batches, and how many steps of it are run.
void SetLengths(const EstimateOptions& options, Estimate& out) {
  if (!options.lengths.has_value()) return;
  out.lengths = options.lengths;
  out.batching = options.batching;
  out.seed = options.seed;
  const std::optional<std::int64_t> most = options.tokens.has_value() ? options.tokens : out.model.max_positions;
  if (most.has_value()) out.lengths->CutTo(*most);
  if (options.tokens.has_value()) out.lengths->longest = *options.tokens;
  out.run.tokens = out.lengths->longest;
  out.run.batches = EpochOf(*out.lengths, out.batching, out.run.batch, out.seed);
  const auto batches = static_cast<std::int64_t>(out.run.batches.size());
  out.epoch_steps = std::max<std::int64_t>(batches / out.run.accumulation, 1);
  if (options.runs_an_epoch) out.run.steps = std::min(out.epoch_steps, kMostEpochSteps);
}

absl::Status Check(const char* flag, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(flag, ": ", value, " is not from ", least, " to ", most));
}

absl::Status CheckRun(const Model& model, const EstimateOptions& options) {
  const DryRunOptions& run = options.run;
  for (const absl::Status& status :
       {Check("--batch", run.batch, 1, kMostBatch), Check("--accumulation", run.accumulation, 1, 1024),
        Check("--target-seq", run.target_tokens, 0, kMostBatch), Check("--steps", run.steps, 0, kMostSteps)}) {
    if (!status.ok()) return status;
  }
  if (absl::Status status = CheckOptimizer(run.optimizer); !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--optimizer: ", status.message()));
  }
  if (!options.tokens.has_value() && !options.lengths.has_value()) return absl::OkStatus();
  if (model.tokens_a_sample.has_value()) {
    const char* flag = options.tokens.has_value() ? "--seq" : "--lengths";
    return absl::InvalidArgumentError(absl::StrCat(flag, ": a sample of ", model.family, " has ",
                                                   *model.tokens_a_sample, " tokens, as its file says"));
  }
  if (!options.tokens.has_value()) return absl::OkStatus();
  return Check("--seq", *options.tokens, 1, model.max_positions.value_or(kMostBatch));
}

// The context of the named device, else of the one that stands for it.
void SetContext(const std::optional<gpus::Gpu>& named, bool is_lazy, Estimate& out) {
  const gpus::ModuleLoading loading = is_lazy ? gpus::ModuleLoading::kLazy : gpus::ModuleLoading::kEager;
  const gpus::GpuFact context = named.has_value() ? gpus::ContextOf(*named, loading) : gpus::UnknownContext(loading);
  out.context_bytes = context.value;
  out.context_source = std::string(context.source);
  if (context.mark == gpus::Mark::kAssumed) out.context_spread = gpus::KnownContexts(loading);
}

// The device's memory and what of it the allocator cannot have.
absl::Status SetDevice(const EstimateOptions& options, const kernels::Framework& framework, Estimate& out) {
  std::optional<gpus::Gpu> device;
  if (!options.device.empty()) {
    const absl::StatusOr<gpus::Gpu> named = gpus::GpuNamed(options.device);
    if (!named.ok()) return absl::InvalidArgumentError(absl::StrCat("--device: ", named.status().message()));
    device = *named;
    out.device = std::string(device->name);
    out.capacity_bytes = device->total_bytes.value;
    out.capacity_source = std::string(device->total_bytes.source);
    out.run.gpu = std::string(device->library_gpu);
  }
  SetContext(device, framework.loads_kernels_lazily, out);
  if (!framework.has_cublas_workspace && out.run.steps > 0) {
    out.driver_bytes = out.run.is_training ? kDriverBytesTraining : kDriverBytesInference;
  }
  if (options.capacity_bytes.has_value()) {
    out.capacity_bytes = options.capacity_bytes;
    out.capacity_source = options.capacity_flag;
  }
  if (options.context_bytes.has_value()) {
    out.context_bytes = *options.context_bytes;
    out.context_source = "--context";
    out.context_spread.reset();
  }
  if (!options.gpu.empty()) out.run.gpu = options.gpu;
  return absl::OkStatus();
}

absl::Status SetRuns(RunObserver* observer, Estimate& out) {
  const std::uint64_t outside = out.context_bytes + out.driver_bytes;
  if (out.capacity_bytes.has_value()) {
    if (*out.capacity_bytes <= outside) {
      const bool is_device = out.capacity_source.rfind("--", 0) != 0;  // then the context is what was given
      return absl::InvalidArgumentError(
          absl::StrCat(is_device ? "--context" : out.capacity_source, ": ", FormatBytes(*out.capacity_bytes),
                       " is no more than what lies outside the allocator, ", FormatBytes(outside)));
    }
    out.run.capacity_bytes = *out.capacity_bytes - outside;
  }
  out.no_dry_run = WhyNoProgram(out.model, out.run);
  if (!out.run.attention.has_value()) out.run.attention = DefaultAttention(out.model, out.run);
  if (!out.no_dry_run.empty()) return absl::OkStatus();
  for (const auto& [order, run] : {std::pair(device::AddressOrder::kAscending, &out.ascending),
                                   std::pair(device::AddressOrder::kDescending, &out.descending)}) {
    const bool is_observed = order == device::AddressOrder::kAscending;
    absl::StatusOr<DryRun> dry = RunDry(out.model, out.run, order, is_observed ? observer : nullptr);
    if (!dry.ok()) return dry.status();
    *run = *std::move(dry);
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<ByteInterval> Estimate::DeviceInterval() const {
  if (!ascending.has_value() || !ascending->fits || !descending->fits) return std::nullopt;
  const auto [least, most] = std::minmax({DeviceBytes(*ascending), DeviceBytes(*descending)});
  ByteInterval out{least, most, "the driver's addresses in either order"};
  if (context_spread.has_value()) {
    out.least_bytes -= context_bytes - context_spread->first;
    out.most_bytes += context_spread->second - context_bytes;
    absl::StrAppend(&out.reason, ", contexts of ", FormatBytes(context_spread->first), " to ",
                    FormatBytes(context_spread->second), " by device");
  }
  return out;
}

std::vector<LayerSum> SumLayers(const Model& model) {
  std::vector<LayerSum> out;
  for (const ModelParameter& parameter : model.parameters) {
    std::string layer = LayerOf(parameter.name);
    if (out.empty() || out.back().name != layer) out.push_back({std::move(layer)});
    out.back().parameters += parameter.count();
    ++out.back().tensors;
  }
  return out;
}

std::vector<Outlier> FindOutliers(const Model& model) {
  std::vector<Outlier> out;
  if (model.parameters.size() < 2) return out;
  const std::int64_t all = model.count();
  for (const ModelParameter& parameter : model.parameters) {
    if (parameter.count() < all / kOutlierShare || parameter.count() == 0) continue;
    Outlier next{parameter.name, parameter.sizes, parameter.count(), IsEmbedding(parameter)};
    for (const ModelParameter& other : model.parameters) {
      if (next.is_embedding && !other.sizes.empty() && other.sizes[0] == next.sizes[0]) {
        next.parameters_of_its_rows += other.count();
      }
    }
    AddColumn(model, next);
    out.push_back(std::move(next));
  }
  return out;
}

absl::StatusOr<Estimate> EstimateMemory(const Model& described, const EstimateOptions& options) {
  absl::StatusOr<Model> switched = SwitchedModel(described, options.run.switches);
  if (!switched.ok()) return switched.status();
  Model model = *std::move(switched);
  if (absl::Status status = CheckRun(model, options); !status.ok()) return status;
  Estimate out;
  out.run = options.run;
  const std::int64_t longest = std::min(model.max_positions.value_or(kMostDefaultTokens), kMostDefaultTokens);
  out.run.tokens = model.tokens_a_sample.value_or(options.tokens.value_or(longest));
  const absl::StatusOr<kernels::Framework> framework = kernels::FrameworkOf(out.run.torch_version);
  if (!framework.ok()) return absl::InvalidArgumentError(absl::StrCat("--torch: ", framework.status().message()));
  if (const auto versions = VersionsFor(out.run); !versions.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("--transformers: ", versions.status().message()));
  }
  if (absl::Status status = SetDevice(options, *framework, out); !status.ok()) return status;
  out.layers = SumLayers(model);
  out.outliers = FindOutliers(model);
  out.states = StatesOf(model, out.run);
  out.model = std::move(model);
  SetLengths(options, out);
  out.rule_of_thumb_bytes = RuleOfThumb(out.model, out.run.batch, out.run.tokens);
  if (absl::Status status = SetRuns(options.observer, out); !status.ok()) return status;
  return out;
}

}  // namespace ashlar::estimate
