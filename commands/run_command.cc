#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "commands/commands.h"
#include "commands/shared/fields.h"
#include "console/command.h"
#include "console/progress_line.h"
#include "estimator/run_observer.h"
#include "kernels/workloads/cuda/cuda_machine.h"
#include "kernels/workloads/workload.h"

namespace ashlar::cli {
namespace {

using kernels::Workload;

struct RunFlags {
  std::string device = "sim";
  std::string capacity;  // empty: what the runtime has
  std::string conf;
  std::string compat = "torch-2.10";
  std::string torch = "2.6";
  std::string gpu = "A100";
  std::string segment_addresses = "ascending";
  std::uint64_t seed = 0;
  std::string capture;
  bool json = false;
  std::map<std::string, std::string> workload;  // its own flags, as given
};

absl::StatusOr<kernels::RuntimeOptions> RuntimeOf(const RunFlags& flags) {
  kernels::RuntimeOptions out;
  const absl::StatusOr<kernels::DeviceKind> kind = kernels::ParseDeviceKind(flags.device);
  if (!kind.ok()) return OfFlag("--device", kind.status());
  std::optional<std::uint64_t> capacity;
  if (absl::Status status = ReadSize("--capacity", flags.capacity, DeviceSizes(), capacity); !status.ok())
    return status;
  if (capacity.has_value()) out.capacity_bytes = *capacity;
  const absl::StatusOr<policy::Compat> compat = policy::ParseCompat(flags.compat);
  if (!compat.ok()) return OfFlag("--compat", compat.status());
  absl::StatusOr<policy::Options> options = policy::ParseConf(flags.conf, *compat, policy::Keys::kAshlar);
  if (!options.ok()) return OfFlag("--conf", options.status());
  const absl::StatusOr<kernels::Framework> framework = kernels::FrameworkOf(flags.torch);
  if (!framework.ok()) return OfFlag("--torch", framework.status());
  const absl::StatusOr<kernels::GpuKind> gpu = kernels::GpuNamed(flags.gpu);
  if (!gpu.ok()) return OfFlag("--gpu", gpu.status());
  if (absl::Status status = ReadAddressOrder(flags.segment_addresses, out.address_order); !status.ok()) return status;
  out.kind = *kind;
  out.allocator = *std::move(options);
  out.framework = *framework;
  out.gpu = *gpu;
  out.seed = flags.seed;
  return out;
}

absl::StatusOr<std::unique_ptr<kernels::Runtime>> RuntimeFor(const kernels::RuntimeOptions& options) {
  if (options.kind != kernels::DeviceKind::kCuda) return kernels::Runtime::Make(options);
  absl::StatusOr<std::unique_ptr<kernels::Machine>> machine = kernels::OpenCudaMachine();
  if (!machine.ok()) {
    return absl::Status(machine.status().code(), absl::StrCat("--device cuda: ", machine.status().message(),
                                                              ": use --device host, which computes on the CPU"));
  }
  absl::StatusOr<std::unique_ptr<kernels::Runtime>> runtime = kernels::Runtime::Make(options, *std::move(machine));
  return runtime.ok() ? std::move(runtime) : OfFlag("--capacity", runtime.status());
}

std::string CapacityOf(const RunFlags& flags, const kernels::Runtime& runtime) {
  return flags.capacity.empty() ? FormatBytes(runtime.capacity_bytes()) : flags.capacity;
}

struct Outcome {
  std::int64_t steps_done = 0;
  std::vector<double> losses;
  absl::Status status;
};

std::string Bytes(std::uint64_t bytes) { return absl::StrFormat("%12s", FormatBytes(bytes)); }

std::string ToText(const RunFlags& flags, const Workload& workload, kernels::Runtime& runtime, const Outcome& outcome) {
  const kernels::TensorMemory& memory = runtime.context().memory();
  const core::Stats stats = runtime.allocator().stats();
  std::string out =
      absl::StrCat(workload.name, " on ", flags.device, ", ", CapacityOf(flags, runtime), ", settings '", flags.conf,
                   "', rules of ", flags.compat, ", as PyTorch ", flags.torch, " allocates\n");
  absl::StrAppend(&out, "steps done      ", outcome.steps_done, "\n");
  if (!outcome.losses.empty()) {
    absl::StrAppendFormat(&out, "loss            %.6f -> %.6f\n", outcome.losses.front(), outcome.losses.back());
  }
  absl::StrAppend(&out, "peak requested ", Bytes(memory.peak_bytes()), "  in ", memory.peak_phase(), "\n");
  for (std::size_t i = 0; i < kernels::kPartCount; ++i) {
    if (memory.peak_by_part()[i] == 0) continue;
    absl::StrAppend(&out, absl::StrFormat("  %-13s", kernels::PartName(static_cast<kernels::Part>(i))),
                    Bytes(memory.peak_by_part()[i]), "\n");
  }
  absl::StrAppend(&out, "peak allocated ", Bytes(static_cast<std::uint64_t>(stats.allocated_bytes.all().peak)), "\n");
  absl::StrAppend(&out, "peak reserved  ", Bytes(static_cast<std::uint64_t>(stats.reserved_bytes.all().peak)), "\n");
  if (const auto& failure = memory.failure()) {
    absl::StrAppend(&out, "OUT OF MEMORY   ", FormatBytes(failure->bytes), " requested in ", failure->place.phase);
    if (!failure->place.owner.empty()) absl::StrAppend(&out, ", ", failure->place.owner);
    if (!failure->place.tensor.empty()) absl::StrAppend(&out, ", ", failure->place.tensor);
    absl::StrAppend(&out, ", with ", FormatBytes(failure->live_bytes), " live\n");
  }
  if (!flags.capture.empty()) absl::StrAppend(&out, "captured        ", flags.capture, "\n");
  return out;
}

// A run as it is answered.
struct RunAnswer {
  const RunFlags& flags;
  const Workload& workload;
  kernels::Runtime& runtime;
  const Outcome& outcome;

  const kernels::TensorMemory& memory() const { return runtime.context().memory(); }
  core::Stats stats() const { return runtime.allocator().stats(); }
};

struct RunParts {
  kernels::PartBytes bytes;
};

template <kernels::Part part>
std::uint64_t BytesOfPart(const RunParts& parts) {
  return parts.bytes[static_cast<std::size_t>(part)];
}

}  // namespace
}  // namespace ashlar::cli

namespace ashlar::report {

template <>
const Fields<kernels::RefusedRequest>& FieldsOf<kernels::RefusedRequest>() {
  using kernels::RefusedRequest;
  static const auto* fields = new Fields<RefusedRequest>(
      Fields<RefusedRequest>("out_of_memory")
          .Add("requested_bytes", &RefusedRequest::bytes, "Of the request.")
          .Add("live_bytes", &RefusedRequest::live_bytes, "Requested before and not freed.")
          .Add(
              "phase", [](const auto& of) { return of.place.phase; }, "Of the step.")
          .Add(
              "owner", [](const auto& of) { return of.place.owner; }, "The parameter at work; empty where none is.")
          .Add(
              "tensor", [](const auto& of) { return of.place.tensor; },
              "What it was for; empty where that has no name."));
  return *fields;
}

template <>
const Fields<cli::RunParts>& FieldsOf<cli::RunParts>() {
  using cli::BytesOfPart;
  using kernels::Part;
  static const auto* fields = new Fields<cli::RunParts>(
      Fields<cli::RunParts>("parts")
          .Add(PartName(Part::kWeights), &BytesOfPart<Part::kWeights>, "Parameters and buffers.")
          .Add(PartName(Part::kGradients), &BytesOfPart<Part::kGradients>, "Of parameters.")
          .Add(PartName(Part::kOptimizer), &BytesOfPart<Part::kOptimizer>, "Its states.")
          .Add(PartName(Part::kBatch), &BytesOfPart<Part::kBatch>, "Inputs and labels.")
          .Add(PartName(Part::kActivations), &BytesOfPart<Part::kActivations>,
               "What forward and backward make, temporaries included.")
          .Add(PartName(Part::kLibraries), &BytesOfPart<Part::kLibraries>, "Workspaces of cuBLAS."));
  return *fields;
}

template <>
const Fields<cli::RunAnswer>& FieldsOf<cli::RunAnswer>() {
  static const auto* fields = new Fields<cli::RunAnswer>(
      Fields<cli::RunAnswer>("run")
          .Add(
              "workload", [](const auto& of) { return of.workload.name; }, "Its name.")
          .AddWord(
              "device", [](const auto& of) { return of.flags.device; }, {"sim", "host", "cuda"}, "Where it ran.")
          .Add(
              "conf", [](const auto& of) { return of.flags.conf; }, "The settings as given.")
          .Add(
              "compat", [](const auto& of) { return of.flags.compat; }, "Whose allocator's rules.")
          .Add(
              "torch", [](const auto& of) { return of.flags.torch; },
              "The version of PyTorch whose tape and optimizers it follows.")
          .AddCount(
              "steps_done", [](const auto& of) { return of.outcome.steps_done; },
              "Optimizer steps, or requests answered.")
          .Add(
              "losses", [](const auto& of) { return of.outcome.losses; }, "One a step, where there is arithmetic.")
          .Add(
              "peak_requested_bytes", [](const auto& of) { return of.memory().peak_bytes(); },
              "The most requested bytes at a time.")
          .Add(
              "peak_phase", [](const auto& of) { return of.memory().peak_phase(); }, "When that was.")
          .AddCount(
              "peak_allocated_bytes", [](const auto& of) { return of.stats().allocated_bytes.all().peak; },
              "The most bytes in blocks that are handed out.")
          .AddCount(
              "peak_reserved_bytes", [](const auto& of) { return of.stats().reserved_bytes.all().peak; },
              "The most bytes obtained from the device.")
          .Add(
              "out_of_memory", [](const auto& of) { return of.memory().failure(); },
              "The request that failed and ended the run; null where none did. The exit code is 1 then.")
          .Add(
              "peak_by_part_bytes", [](const auto& of) { return cli::RunParts{of.memory().peak_by_part()}; },
              "What the requested bytes at the peak are for."));
  return *fields;
}

}  // namespace ashlar::report

namespace ashlar::cli {

std::string RunSchema() { return report::SchemaTextOf<RunAnswer>("run", "A workload through the allocator."); }

namespace {

Outcome RunIn(const Workload& workload, kernels::Runtime& runtime, kernels::Flags& flags) {
  Outcome out;
  ProgressLine line;
  out.status = workload.run(runtime, flags, [&](const kernels::Progress& progress) {
    out.steps_done = progress.step;
    if (progress.loss) out.losses.push_back(*progress.loss);
    line.Show(absl::StrCat(progress.step, " of ", progress.steps, " steps"));
  });
  if (const absl::Status finished = runtime.Finish(); out.status.ok()) out.status = finished;
  return out;
}

int RunOneWorkload(const RunFlags& flags, const Workload& workload) {
  const absl::StatusOr<kernels::RuntimeOptions> options = RuntimeOf(flags);
  if (!options.ok()) return Fail(kUsage, options.status());
  kernels::Flags own(workload.flags);
  for (const auto& [name, value] : flags.workload) own.Set(name, value);
  const absl::StatusOr<std::unique_ptr<kernels::Runtime>> runtime = RuntimeFor(*options);
  if (!runtime.ok()) return Fail(kUsage, runtime.status());
  estimate::RunCapture capture{std::string(workload.name)};
  if (!flags.capture.empty()) {
    capture.OnBegin((*runtime)->allocator(), (*runtime)->context().memory());
    (*runtime)->allocator().SetSink(&capture);
  }
  const Outcome outcome = RunIn(workload, **runtime, own);
  (*runtime)->allocator().SetSink(nullptr);
  const bool is_out_of_memory = outcome.status.code() == absl::StatusCode::kResourceExhausted;
  if (!outcome.status.ok() && !is_out_of_memory) return Fail(kUsage, outcome.status);
  if (!flags.capture.empty()) {
    capture.OnEnd();
    if (absl::Status status = WriteCapture(flags.capture, capture.snapshot()); !status.ok()) {
      return Fail(kUnreadable, status);
    }
  }
  const std::string text = flags.json
                               ? report::FieldsOf<RunAnswer>().ToJson({flags, workload, **runtime, outcome}).ToText()
                               : ToText(flags, workload, **runtime, outcome);
  if (!Print(text)) return kUnreadable;
  return is_out_of_memory ? kCheckFailed : kOk;
}

void AddCommonFlags(Command& app, RunFlags& flags) {
  app.Add("--device", flags.device,
          "sim (allocations alone), host (with arithmetic, in host memory) or cuda (on a GPU)");
  app.Add("--capacity", flags.capacity, "all the memory that the allocator may have (16GiB; on cuda, what the GPU has)")
      .Takes("SIZE");
  app.Add("--conf", flags.conf, "settings, as for PYTORCH_CUDA_ALLOC_CONF").Takes("CONF");
  app.Add("--compat", flags.compat, "whose allocator: torch-1.13, torch-2.6, torch-2.10, torch-2.12, torch-latest")
      .Takes("RELEASE");
  app.Add("--torch", flags.torch, "which version of PyTorch's tape and optimizers, such as 1.10 or 2.6");
  app.Add("--gpu", flags.gpu, "whose kernels' buffers: V100, T4, A100, H100, H200");
  app.Add("--segment-addresses", flags.segment_addresses, "of the simulated device: ascending, descending or driver")
      .Takes("ORDER");
  app.Add("--seed", flags.seed, "of lengths, tokens and first weights").Between(0, 1'000'000'000'000);
  app.Add("--capture", flags.capture,
          "writes what happened, for ashlar explain: a PyTorch snapshot, or our recording (.ashlar)")
      .Takes("FILE");
  app.Add("--json", flags.json, "print JSON (ashlar schema run)");
}

}  // namespace

void AddRun(CommandLine& line) {
  Command app = line.AddCommand("run", "run a workload through the allocator and capture it");
  app.Example("ashlar run bert_training --capacity 16GiB");
  for (const Workload& workload : kernels::Workloads()) {
    Command one = app.AddCommand(std::string(workload.name), std::string(workload.summary));
    auto flags = std::make_shared<RunFlags>();
    AddCommonFlags(one, *flags);
    for (const kernels::FlagSpec& spec : workload.flags) {
      const std::string name(spec.name);
      const auto take = [flags, name](const std::string& value) { flags->workload[name] = value; };
      one.AddText("--" + name, take, absl::StrCat(spec.help, " (", spec.value, ")")).Under("Workload");
    }
    one.OnRun([flags, &workload] { return RunOneWorkload(*flags, workload); });
  }
}

}  // namespace ashlar::cli
