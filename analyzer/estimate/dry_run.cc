#include "analyzer/estimate/dry_run.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/device/sim_device.h"
#include "allocator/policy/options.h"
#include "kernels/workloads/training.h"

namespace ashlar::estimate {
namespace {

using kernels::Context;
using kernels::DType;
using kernels::Empty;
using kernels::Part;
using kernels::Tensor;

constexpr std::uint64_t kAmpleBytes = std::uint64_t{1} << 46;

// A model that was built: what a step asks of it.
class Program {
 public:
  virtual ~Program() = default;
  virtual Tensor Loss() = 0;   // of a new batch
  virtual void Forward() = 0;  // of a new batch, nothing kept
};

class BertProgram final : public Program {
 public:
  BertProgram(kernels::Parameters& parameters, const BertClassifierConfig& config, const DryRunOptions& options)
      : context_(parameters.context()),
        options_(options),
        model_(parameters, config.bert, config.labels,
               {.is_checkpointed = options.is_checkpointed, .is_training = options.is_training}) {}
  Tensor Loss() override {
    const Tensor ids = Ids();
    return model_.Loss(ids, Empty(context_, {options_.batch}, DType::kInt64, Part::kBatch));
  }
  void Forward() override { model_.Logits(Ids()); }

 private:
  Tensor Ids() { return Empty(context_, {options_.batch, options_.tokens}, DType::kInt64, Part::kBatch); }
  Context& context_;
  const DryRunOptions& options_;
  kernels::BertClassifier model_;
};

class TabFormerProgram final : public Program {
 public:
  TabFormerProgram(kernels::Parameters& parameters, const kernels::TabFormerConfig& config,
                   const DryRunOptions& options)
      : context_(parameters.context()),
        sizes_({options.batch, config.rows, config.columns()}),
        model_(parameters, config) {}
  Tensor Loss() override {
    const Tensor ids = Empty(context_, sizes_, DType::kInt64, Part::kBatch);
    return model_.Loss(ids, Empty(context_, sizes_, DType::kInt64, Part::kBatch));
  }
  void Forward() override { Loss(); }

 private:
  Context& context_;
  kernels::Dims sizes_;
  kernels::TabFormer model_;
};

std::unique_ptr<Program> MakeProgram(kernels::Parameters& parameters, const Model& model,
                                     const DryRunOptions& options) {
  if (const auto* bert = std::get_if<BertClassifierConfig>(&model.program)) {
    return std::make_unique<BertProgram>(parameters, *bert, options);
  }
  return std::make_unique<TabFormerProgram>(parameters, std::get<kernels::TabFormerConfig>(model.program), options);
}

std::optional<DType> AutocastOf(Precision precision) {
  if (precision == Precision::kFloat16Mixed) return DType::kFloat16;
  if (precision == Precision::kBFloat16Mixed) return DType::kBFloat16;
  return std::nullopt;
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

void Train(const kernels::Parameters& parameters, Program& program, const DryRunOptions& options,
           PeakRecorder& recorder) {
  kernels::Training training(parameters, TrainingOf(options));
  recorder.set_step(1);
  const absl::Status status = training.Run(
      options.steps, [&] { return program.Loss(); },
      [&](std::int64_t step, std::optional<double>) { recorder.set_step(step + 1); });
  if (!status.ok()) parameters.context().memory().Fail(status);
}

void Infer(Context& context, Program& program, const DryRunOptions& options, PeakRecorder& recorder) {
  const kernels::NoGrad no_grad(context);
  const std::optional<DType> autocast = AutocastOf(options.precision);
  context.memory().set_phase("forward");
  for (std::int64_t step = 1; step <= options.steps; ++step) {
    recorder.set_step(step);
    const kernels::Autocast scope(context, autocast.has_value(), autocast.value_or(DType::kFloat16));
    program.Forward();
  }
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

policy::Compat CompatOf(const std::string& torch_version) {
  const std::size_t dot = torch_version.find('.');
  int major = 0, minor = 0;
  const bool is_read = absl::SimpleAtoi(torch_version.substr(0, dot), &major) && dot != std::string::npos &&
                       absl::SimpleAtoi(torch_version.substr(dot + 1), &minor);
  if (is_read && major < 2) return policy::Compat::kTorch113;
  return is_read && minor <= 7 ? policy::Compat::kTorch26 : policy::Compat::kTorch210;
}

// Sizes stay far within 64 bits: the largest tensor of a step is scores, inner activations or logits.
absl::Status CheckLargestTensor(const Model& model, const DryRunOptions& options) {
  constexpr double kMostElements = 1e15;
  const double tokens = static_cast<double>(options.batch) * static_cast<double>(options.tokens);
  double widest = 0;
  if (const auto* bert = std::get_if<BertClassifierConfig>(&model.program)) {
    widest = std::max(static_cast<double>(bert->bert.num_attention_heads) * static_cast<double>(options.tokens),
                      static_cast<double>(std::max(bert->bert.intermediate_size, bert->bert.hidden_size)));
  }
  if (const auto* table = std::get_if<kernels::TabFormerConfig>(&model.program)) {
    widest = static_cast<double>(std::max(table->vocabulary(), table->inner));
  }
  if (tokens * widest <= kMostElements) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--batch: ", options.batch, " x ", options.tokens, " tokens make a tensor of over 10^15 elements"));
}

absl::Status Named(const char* flag, const absl::Status& status) {
  return absl::InvalidArgumentError(absl::StrCat(flag, ": ", status.message()));
}

}  // namespace

std::string WhyNoDryRun(const Model& model, const DryRunOptions& options) {
  const bool is_tabformer = std::holds_alternative<kernels::TabFormerConfig>(model.program);
  if (is_tabformer && options.is_checkpointed) return "no dry run of tabformer with checkpointing yet";
  if (is_tabformer && !options.is_training) return "no dry run of inference for tabformer yet";
  if (!std::holds_alternative<std::monostate>(model.program)) return {};
  const std::string what = model.architecture.empty() ? "a list of parameters" : model.architecture;
  return absl::StrCat("no dry run for ", what, " yet: printed from parameters only, without activations",
                      model.family == "bert" ? "; --architecture BertForSequenceClassification has one" : "");
}

absl::StatusOr<DryRun> RunDry(const Model& model, const DryRunOptions& options, device::AddressOrder order) {
  if (std::string why = WhyNoDryRun(model, options); !why.empty()) return absl::FailedPreconditionError(why);
  if (absl::Status status = CheckLargestTensor(model, options); !status.ok()) return status;
  const absl::StatusOr<kernels::Framework> framework = kernels::FrameworkOf(options.torch_version);
  if (!framework.ok()) return Named("--torch", framework.status());
  const absl::StatusOr<kernels::Gpu> gpu = kernels::GpuNamed(options.gpu);
  if (!gpu.ok()) return Named("--gpu", gpu.status());
  const absl::StatusOr<policy::Options> settings = policy::ParseConf(options.conf, CompatOf(options.torch_version));
  if (!settings.ok()) return Named("--conf", settings.status());

  device::SimDeviceOptions device_options;
  device_options.capacity_bytes = options.capacity_bytes.value_or(kAmpleBytes);
  device_options.address_order = order;
  device::SimDevice device(device_options);
  core::CachingAllocator allocator(&device, *settings);
  Context context(&allocator, Stream{0}, *framework, *gpu);
  PeakRecorder recorder(context.memory());
  allocator.SetSink(&recorder);
  DryRun out;
  {
    kernels::Parameters parameters(context);
    context.memory().set_phase("model");
    const std::unique_ptr<Program> program = MakeProgram(parameters, model, options);
    out.parameters = parameters.count();
    if (options.is_training) {
      Train(parameters, *program, options, recorder);
    } else {
      Infer(context, *program, options, recorder);
    }
  }
  allocator.SetSink(nullptr);  // what the context frees at its end is no part of the run
  const kernels::Memory& memory = context.memory();
  const std::optional<kernels::FailedRequest>& failure = memory.failure();
  if (!memory.ok() && !failure.has_value()) return memory.status();
  out.fits = !failure.has_value();
  out.moment = recorder.peak();
  const kernels::PartBytes& live = out.fits ? memory.peak_by_part() : failure->live_by_part;
  out.parts = PartsOf(live, recorder.SavedBytesAtPeak());
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
