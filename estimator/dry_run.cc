#include "estimator/dry_run.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/device/sim_device.h"
#include "allocator/policy/options.h"
#include "analyzer/replay/request_replay.h"
#include "estimator/model.h"
#include "estimator/program.h"
#include "kernels/workloads/training.h"

namespace ashlar::estimate {
namespace {

using kernels::Context;
using kernels::DType;
using kernels::Part;

std::optional<DType> AutocastOf(Precision precision) {
  if (precision == Precision::kFloat16Mixed) return DType::kFloat16;
  if (precision == Precision::kBFloat16Mixed) return DType::kBFloat16;
  return std::nullopt;
}

DType WeightsOf(Precision precision) {
  if (precision == Precision::kFloat16Pure) return DType::kFloat16;
  return precision == Precision::kBFloat16Pure ? DType::kBFloat16 : DType::kFloat32;
}

// The optimizers' own defaults of weight decay: none for SGD.
kernels::TrainingOptions TrainingOf(const DryRunOptions& options) {
  kernels::TrainingOptions out;
  out.accumulation = options.accumulation;
  out.autocast = AutocastOf(options.precision);
  const bool has_momentum = options.optimizer == "sgd-momentum";
  out.optimizer = has_momentum ? "sgd" : options.optimizer;
  if (has_momentum) out.optimizer_options.momentum = 0.9;
  if (out.optimizer == "sgd") out.optimizer_options.weight_decay = 0;
  return out;
}

// The caller's variable for what a model's call returns beside the loss: what it holds ends when the next call's are
// there, as Python rebinds a name.
class Outputs {
 public:
  explicit Outputs(const DryRunOptions& options) : is_kept_(options.keeps_outputs) {}
  template <typename Call>
  auto Of(const Call& call) {
    std::vector<kernels::Tensor> now;
    const auto rebind = [&] { held_ = std::move(now); };
    if constexpr (std::is_void_v<decltype(call(nullptr))>) {
      call(is_kept_ ? &now : nullptr);
      rebind();
    } else {
      auto out = call(is_kept_ ? &now : nullptr);
      rebind();
      return out;
    }
  }

 private:
  bool is_kept_;
  std::vector<kernels::Tensor> held_;
};

// The batches of a run, one a call.
class Batches {
 public:
  explicit Batches(const DryRunOptions& options) : options_(options) {}
  BatchShape Next() {
    if (options_.batches.empty()) {
      return {options_.batch, options_.tokens, options_.target_tokens, options_.is_padded};
    }
    return options_.batches[next_++ % options_.batches.size()];
  }

 private:
  const DryRunOptions& options_;
  std::size_t next_ = 0;
};

void Train(const kernels::Parameters& parameters, Program& program, const DryRunOptions& options,
           PeakRecorder& recorder) {
  kernels::TrainingOptions of_training = TrainingOf(options);
  of_training.after_backward = [&] { program.EndBatch(); };
  kernels::Training training(parameters, std::move(of_training));
  if (options.steps > 0) recorder.BeginStep(1);
  Batches batches(options);
  Outputs outputs(options);
  const absl::Status status = training.Run(
      options.steps,
      [&] { return outputs.Of([&](std::vector<kernels::Tensor>* now) { return program.Loss(batches.Next(), now); }); },
      [&](std::int64_t step, std::optional<double>) {
        if (step < options.steps) recorder.BeginStep(step + 1);
      });
  if (!status.ok()) parameters.context().memory().Fail(status);
  recorder.End();
}

void Infer(Context& context, Program& program, const DryRunOptions& options, PeakRecorder& recorder) {
  const kernels::NoGrad no_grad(context);
  const std::optional<DType> autocast = AutocastOf(options.precision);
  Batches batches(options);
  Outputs outputs(options);
  context.memory().set_phase("forward");
  for (std::int64_t step = 1; step <= options.steps; ++step) {
    recorder.BeginStep(step);
    const kernels::Autocast scope(context, autocast.has_value(), autocast.value_or(DType::kFloat16));
    outputs.Of([&](std::vector<kernels::Tensor>* now) { program.Forward(batches.Next(), now); });
  }
  recorder.End();
}

MomentParts PartsOf(const kernels::PartBytes& live, std::uint64_t saved) {
  const auto of = [&](Part part) { return live[static_cast<std::size_t>(part)]; };
  MomentParts out;
  out.weights = of(Part::kWeights);
  out.gradients = of(Part::kGradients);
  out.optimizer = of(Part::kOptimizer);
  out.saved_activations = std::min(saved, of(Part::kActivations));
  out.temporaries = of(Part::kActivations) - out.saved_activations;
  out.batch = of(Part::kBatch);
  out.libraries = of(Part::kLibraries);
  return out;
}

// Sizes stay far within 64 bits.
absl::Status CheckLargestTensor(const Model& model, const DryRunOptions& options) {
  constexpr double kMostElements = 1e15;
  DryRunOptions largest = options;
  for (const BatchShape& shape : options.batches) {
    largest.batch = std::max(largest.batch, shape.batch);
    largest.tokens = std::max(largest.tokens, shape.tokens);
  }
  const double tokens = static_cast<double>(largest.batch) * static_cast<double>(largest.tokens);
  if (tokens * WidestTensor(model, largest) <= kMostElements) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--batch: ", largest.batch, " x ", largest.tokens, " tokens make a tensor of over 10^15 elements"));
}

std::vector<std::string> OnHost(const Model& model) {
  std::vector<std::string> out;
  for (const ModelParameter& parameter : model.parameters) {
    if (parameter.is_on_host) out.push_back(parameter.name);
  }
  return out;
}

absl::Status Named(const char* flag, const absl::Status& status) {
  return absl::InvalidArgumentError(absl::StrCat(flag, ": ", status.message()));
}

}  // namespace

policy::Compat CompatOf(const std::string& torch_version) {
  // Free blocks in the order of their addresses, in each release: a model's run has no history that another order
  // needs.
  const policy::Compat newest = policy::Compat::kTorch210;
  const std::optional<kernels::Version> version = kernels::VersionOf(torch_version);
  return version.has_value() ? std::min(policy::RulesOfRelease(*version).compat, newest) : newest;
}

absl::StatusOr<DryRun> RunDry(const Model& described, const DryRunOptions& asked, device::AddressOrder order,
                              RunObserver* observer) {
  const absl::StatusOr<Model> switched = SwitchedModel(described, asked.switches);
  if (!switched.ok()) return switched.status();
  const Model& model = *switched;
  DryRunOptions options = asked;
  if (!options.attention.has_value()) options.attention = DefaultAttention(model, asked);
  if (std::string why = WhyNoProgram(model, options); !why.empty()) return absl::FailedPreconditionError(why);
  if (absl::Status status = CheckLargestTensor(model, options); !status.ok()) return status;
  const absl::StatusOr<kernels::Framework> framework = kernels::FrameworkOf(options.torch_version);
  if (!framework.ok()) return Named("--torch", framework.status());
  if (const auto versions = VersionsFor(options); !versions.ok()) return Named("--transformers", versions.status());
  const absl::StatusOr<kernels::GpuKind> gpu = kernels::GpuNamed(options.gpu);
  if (!gpu.ok()) return Named("--gpu", gpu.status());
  const absl::StatusOr<policy::Options> settings =
      policy::ParseConf(options.conf, CompatOf(options.torch_version), policy::Keys::kAshlar);
  if (!settings.ok()) return Named("--conf", settings.status());

  device::SimDeviceOptions device_options;
  device_options.capacity_bytes = options.capacity_bytes.value_or(replay::kAmpleBytes);
  device_options.address_order = order;
  device::SimDevice device(device_options);
  core::CachingAllocator allocator(&device, *settings);
  Context context(&allocator, Stream{0}, *framework, *gpu);
  PeakRecorder recorder(context.memory(), observer);
  if (observer != nullptr) observer->OnBegin(allocator, context.memory());
  allocator.SetSink(&recorder);
  DryRun out;
  {
    kernels::Parameters parameters(
        context, {.frozen = model.switches.frozen, .on_host = OnHost(model), .dtype = WeightsOf(options.precision)});
    context.memory().set_phase("model");
    const std::unique_ptr<Program> program = MakeProgram(parameters, model, options);
    out.parameters = parameters.count();
    if (options.is_training) {
      Train(parameters, *program, options, recorder);
    } else {
      Infer(context, *program, options, recorder);
    }
  }
  allocator.SetSink(nullptr);
  const kernels::TensorMemory& memory = context.memory();
  const std::optional<kernels::RefusedRequest>& failure = memory.failure();
  if (!memory.ok() && !failure.has_value()) return memory.status();
  out.fits = !failure.has_value();
  out.moment = recorder.peak();
  const kernels::PartBytes& live = out.fits ? memory.peak_by_part() : failure->live_by_part;
  out.parts = PartsOf(live, recorder.SavedBytesAtPeak());
  for (PhaseMoment& phase : recorder.Phases()) {
    out.phases.push_back(
        {phase.step, std::move(phase.phase), PartsOf(phase.live, phase.saved_bytes), phase.reserved_bytes});
  }
  const core::Stats stats = allocator.stats();
  out.peak_requested_bytes = memory.peak_bytes();
  out.peak_allocated_bytes = static_cast<std::uint64_t>(stats.allocated_bytes.all().peak);
  out.peak_reserved_bytes = static_cast<std::uint64_t>(stats.reserved_bytes.all().peak);
  out.reserved_bytes =
      out.fits ? out.peak_reserved_bytes : device_options.capacity_bytes - out.moment.device_free_bytes;
  out.failed_bytes = out.fits ? 0 : failure->bytes;
  out.requests = static_cast<std::uint64_t>(stats.allocation.all().allocated);
  return out;
}

}  // namespace ashlar::estimate
