#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "allocator/base/units.h"
#include "commands/commands.h"
#include "commands/explain/explain.h"
#include "commands/explain/page/page_file.h"
#include "commands/model_flags.h"
#include "commands/shared/layout.h"
#include "console/command.h"
#include "console/output_file.h"
#include "console/progress_line.h"
#include "estimator/levers/fit.h"
#include "estimator/levers/levers.h"
#include "estimator/levers/shuffles.h"
#include "estimator/model.h"
#include "estimator/report/estimate_report.h"
#include "estimator/run_observer.h"

namespace ashlar::cli {
namespace {

constexpr std::int64_t kMostShuffles = 100'000;

struct EstimateFlags {
  std::string input;
  std::optional<std::int64_t> parameters;
  std::string architecture;
  std::string precision = "fp32";
  std::string attention;
  bool is_inference = false;
  std::string capacity;
  std::string context;
  std::string capture;
  std::string page;
  std::string lengths;
  std::string batching = "dynamic";
  std::optional<std::int64_t> samples;
  std::optional<std::int64_t> shuffles;
  std::optional<std::uint64_t> jobs;
  bool levers = false;
  std::vector<std::string> fit;  // a size or nothing
  bool json = false;
  std::string json_to;
  ModelFlags model;
  estimate::EstimateOptions options;
  std::optional<Command> command;  // tells which flags were given
};

absl::StatusOr<estimate::EstimateOptions> ReadOptions(const EstimateFlags& flags) {
  estimate::EstimateOptions out = flags.options;
  out.run.is_training = !flags.is_inference;
  out.run.switches = SwitchesOf(flags.model);
  const absl::StatusOr<estimate::Precision> precision = estimate::ParsePrecision(flags.precision);
  if (!precision.ok()) return absl::InvalidArgumentError(absl::StrCat("--precision: ", precision.status().message()));
  out.run.precision = *precision;
  if (!flags.attention.empty()) {
    const absl::StatusOr<kernels::Attention> attention = kernels::ParseAttention(flags.attention);
    if (!attention.ok()) return absl::InvalidArgumentError(absl::StrCat("--attention: ", attention.status().message()));
    out.run.attention = *attention;
  }
  absl::Status sizes = ReadSize("--capacity", flags.capacity, DeviceSizes(), out.capacity_bytes);
  SizeRange context = DeviceSizes();
  context.begin_bytes = 0;
  sizes.Update(ReadSize("--context", flags.context, context, out.context_bytes));
  if (!flags.fit.empty()) {
    sizes.Update(ReadSize("--fit", flags.fit.front(), DeviceSizes(), out.capacity_bytes));
    out.capacity_flag = "--fit";
  }
  if (!sizes.ok()) return sizes;
  if (flags.command->IsGiven("--fit") && out.device.empty() && !out.capacity_bytes.has_value()) {
    return absl::InvalidArgumentError("--fit: into how much? Give --fit 16GiB, --device or --capacity");
  }
  if (flags.input.empty() == !flags.parameters.has_value()) {
    return absl::InvalidArgumentError("give a model file, or --parameters N; see ashlar estimate --help");
  }
  return out;
}

// What needs lengths says so. A file's own faults are the file's.
absl::Status ReadLengths(const EstimateFlags& flags, bool has_steps, estimate::EstimateOptions& out) {
  if (flags.jobs.has_value() && (*flags.jobs < 1 || *flags.jobs > kMostThreads)) {
    return absl::InvalidArgumentError(absl::StrCat("--jobs: ", *flags.jobs, " is not from 1 to ", kMostThreads));
  }
  if (flags.lengths.empty()) {
    if (flags.samples.has_value() || flags.shuffles.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(flags.samples.has_value() ? "--samples" : "--shuffles",
                                                     ": give --lengths too, such as mean:80,sd:40,max:512"));
    }
    return absl::OkStatus();
  }
  const absl::StatusOr<estimate::Batching> batching = estimate::ParseBatching(flags.batching);
  if (!batching.ok()) return OfFlag("--batching", batching.status());
  if (flags.shuffles.has_value() && (*flags.shuffles < 1 || *flags.shuffles > kMostShuffles)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--shuffles: ", *flags.shuffles, " is not from 1 to ", kMostShuffles));
  }
  const estimate::LengthOptions options{flags.samples, out.seed};
  absl::StatusOr<estimate::Lengths> lengths;
  if (absl::StrContains(flags.lengths, ':') && absl::StrContains(flags.lengths, "m")) {
    lengths = estimate::NormalLengths(flags.lengths, options);
  } else {
    const absl::StatusOr<std::string> bytes = ReadSmallInput(flags.lengths);
    if (!bytes.ok()) return OfFlag("--lengths", bytes.status());
    lengths = estimate::ListedLengths(flags.lengths, *bytes, options);
    if (absl::IsInvalidArgument(lengths.status())) {
      return absl::InvalidArgumentError(absl::StrCat("--lengths: ", flags.lengths, ", ", lengths.status().message()));
    }
  }
  if (absl::IsOutOfRange(lengths.status())) return OfFlag("--samples", lengths.status());
  if (!lengths.ok()) return OfFlag("--lengths", lengths.status());
  out.lengths = *std::move(lengths);
  out.batching = *batching;
  out.runs_an_epoch = !has_steps;
  return absl::OkStatus();
}

// "meta-llama/Llama-3-8B": an owner and a model, without the end of a file.
bool IsHubName(const std::string& input) {
  const std::vector<std::string> parts = absl::StrSplit(input, '/');
  return parts.size() == 2 && !parts[0].empty() && !parts[1].empty() && parts[0][0] != '.' &&
         !absl::EndsWith(input, ".json") && !std::filesystem::exists(parts[0]);
}

// A file that cannot be read or understood is an unreadable input.
absl::StatusOr<estimate::Model> ReadModelOf(const EstimateFlags& flags) {
  const absl::StatusOr<std::string> bytes = ReadSmallInput(flags.input);
  if (!bytes.ok() && IsHubName(flags.input)) {
    return absl::Status(bytes.status().code(),
                        absl::StrCat(bytes.status().message(), "; of a model on the Hub, first: ", "hf download ",
                                     flags.input, " config.json"));
  }
  if (!bytes.ok()) return bytes.status();
  absl::StatusOr<estimate::Model> model = estimate::ReadModel(*bytes, {flags.architecture});
  if (model.ok()) return model;
  return absl::Status(model.status().code(), absl::StrCat(flags.input, ": ", model.status().message()));
}

// What is asked for besides the estimate itself.
absl::Status RunSimulations(const EstimateFlags& flags, estimate::EstimateReport& report) {
  const auto threads = static_cast<std::size_t>(flags.jobs.value_or(0));
  ProgressLine line;
  if (flags.shuffles.has_value()) {
    absl::StatusOr<estimate::ShuffleResult> shuffles = estimate::RunShuffles(
        report.estimate,
        {.shuffles = *flags.shuffles,
         .seed = report.estimate.seed,
         .threads = threads,
         .progress = [&](std::size_t done, std::size_t all) { line.Show(absl::StrCat(done, " of ", all, " runs")); }});
    if (!shuffles.ok()) return OfFlag("--shuffles", shuffles.status());
    report.shuffles = *std::move(shuffles);
  }
  if (flags.levers) {
    absl::StatusOr<estimate::LeverResult> levers = estimate::RunLevers(report.estimate, threads);
    if (!levers.ok()) return OfFlag("--levers", levers.status());
    report.levers = *std::move(levers);
  }
  if (flags.command->IsGiven("--fit")) {
    absl::StatusOr<estimate::Fit> fit = estimate::FindFit(
        report.estimate,
        {.threads = threads, .progress = [&](std::size_t runs) { line.Show(absl::StrCat(runs, " sets of levers")); }});
    if (!fit.ok()) return OfFlag("--fit", fit.status());
    report.fit = *std::move(fit);
  }
  return absl::OkStatus();
}

// The estimate, and where a run was made, that run as a trace.
absl::Status WriteEstimatePage(const EstimateFlags& flags, const estimate::EstimateReport& report,
                               const estimate::RunCapture& capture) {
  if (flags.page.empty()) return absl::OkStatus();
  std::vector<answers::Explanation> explanations;
  if (report.estimate.no_dry_run.empty()) {
    answers::ExplainSettings options{.picture = answers::PictureLimits{}};
    options.replay.capacity_bytes = report.estimate.capacity_bytes;
    absl::StatusOr<answers::Explanation> explanation = answers::ExplainSnapshot(capture.snapshot(), options);
    if (!explanation.ok()) return explanation.status();
    explanations.push_back(*std::move(explanation));
  }
  const std::string name = flags.input.empty() ? "parameters" : report::PageInputOf(flags.input).name;
  const absl::StatusOr<std::string> html =
      PageOf(explanations, {.title = absl::StrCat("estimate of ", name), .estimate = estimate::ToJson(report)});
  return html.ok() ? WriteFile(flags.page, *html) : html.status();
}

absl::Status KeepsFiles(const EstimateFlags& flags) {
  return NoInputIsWritten({flags.input, flags.lengths},
                          {{"--capture", flags.capture}, {"--report", flags.page}, {"--json-to", flags.json_to}});
}

int RunEstimate(const EstimateFlags& flags) {
  absl::StatusOr<estimate::EstimateOptions> options = ReadOptions(flags);
  if (!options.ok()) return Fail(kUsage, options.status());
  if (absl::Status status = KeepsFiles(flags); !status.ok()) return Fail(kUsage, status);
  if (absl::Status status = ReadLengths(flags, flags.command->IsGiven("--steps"), *options); !status.ok()) {
    return Fail(absl::IsInvalidArgument(status) || absl::IsOutOfRange(status) ? kUsage : kUnreadable, status);
  }
  estimate::RunCapture capture("estimate");
  if (!flags.capture.empty() || !flags.page.empty()) options->observer = &capture;
  absl::StatusOr<estimate::Model> model =
      flags.parameters.has_value() ? estimate::ModelOfCount(*flags.parameters) : ReadModelOf(flags);
  if (!model.ok()) return Fail(flags.parameters.has_value() ? kUsage : kUnreadable, model.status());
  absl::StatusOr<estimate::Estimate> estimate = estimate::EstimateMemory(*std::move(model), *options);
  if (!estimate.ok()) return Fail(kUsage, estimate.status());
  if (!flags.capture.empty()) {
    if (!estimate->no_dry_run.empty()) {
      return Fail(kUsage, absl::InvalidArgumentError(absl::StrCat("--capture: ", estimate->no_dry_run)));
    }
    if (absl::Status status = WriteCapture(flags.capture, capture.snapshot()); !status.ok()) {
      return Fail(kUnreadable, status);
    }
  }
  estimate::EstimateReport report{flags.input, *std::move(estimate)};
  if (absl::Status status = RunSimulations(flags, report); !status.ok()) return Fail(kUsage, status);
  const bool is_written = WriteJson(flags.json_to, [&] { return estimate::ToJson(report); });
  if (absl::Status status = WriteEstimatePage(flags, report, capture); !status.ok()) {
    return Fail(kUnreadable, OfFlag("--report", status));
  }
  const bool is_printed = Print(flags.json ? estimate::ToJson(report) : report::Fitted(estimate::ToText(report), {}));
  return is_written && is_printed ? kOk : kUnreadable;
}

void AddRunFlags(Command& app, EstimateFlags& flags) {
  estimate::DryRunOptions& run = flags.options.run;
  app.Add("--batch", run.batch, "samples of a batch (default 8)");
  app.Add("--seq", flags.options.tokens, "tokens of a sample (default: the most the model takes, up to 512)");
  app.Add("--target-seq", run.target_tokens, "tokens of a target, of an encoder-decoder (default: as --seq)");
  app.Add("--accumulation", run.accumulation, "batches of a step (default 1)");
  app.Add("--precision", flags.precision,
          "fp32 (default); fp16 or bf16: autocast, weights stay in fp32; fp16-pure or bf16-pure: the whole model");
  app.Add("--attention", flags.attention, "eager, sdpa or flash (default: what the version of transformers takes)");
  app.Add("--optimizer", run.optimizer,
          "adamw (default), adamw-hf, adamw-loop, adamw-foreach, adamw-fused, adamw-8bit, adafactor, sgd, "
          "sgd-momentum");
  app.Add("--padded", run.is_padded,
          "the batch's samples differ in length, so that an attention mask is given (with --lengths as they do)");
  app.Add("--keep-outputs", run.keeps_outputs,
          "the loop's variable holds what a call returned until the next call has returned");
  app.Add("--checkpointing", run.is_checkpointed, "each layer's activations are recomputed in backward");
  app.Add("--inference", flags.is_inference, "forward passes without gradients, not training");
  app.Add("--steps", run.steps,
          "optimizer steps, or forward passes, to run (default 3, with "
          "--lengths an epoch, 20 at most; 0: the weights alone)");
  app.Add("--torch", run.torch_version, "whose behaviour: 1.10 to 2.15 (default 2.6)");
  app.Add("--transformers", run.transformers_version, "whose models: 4.26 to 4.57 (default: that of torch's time)");
}

void AddSimulationFlags(Command& app, EstimateFlags& flags) {
  app.Add("--lengths", flags.lengths,
          "tokens of the samples: mean:80,sd:40,max:512 (a normal distribution), or a file with one a line")
      .Takes("LENGTHS");
  app.Add("--batching", flags.batching,
          "of --lengths: fixed (padded to the longest there may be), dynamic (default; to the longest of the "
          "batch), uniform (samples of about one length together)");
  app.Add("--samples", flags.samples, "of an epoch (default 1000, or all of the file)");
  app.Add("--seed", flags.options.seed, "of lengths and shuffles (default 0)");
  app.Add("--shuffles", flags.shuffles,
          "how many orders of the samples to try, under each batching and the allocator's settings");
  app.Add("--levers", flags.levers, "what each change people make would save, tried alone, and what it costs");
  app.Add("--fit", flags.fit,
          "the cheapest changes that make it fit into this much, or into --device, and the largest "
          "batch")
      .MayStandAlone();
  app.Add("--jobs", flags.jobs, "threads (default: one a core); the result does not depend on it");
}

}  // namespace

void AddEstimate(CommandLine& line) {
  Command app = line.AddCommand("estimate", "the memory of a training or inference run before it starts");
  app.Example("ashlar estimate config.json --batch 8 --seq 1024 --device A100-80GB");
  auto flags = std::make_shared<EstimateFlags>();
  app.Add("model", flags->input, "a Hugging Face config.json or a model file (ashlar guide estimate), or - for stdin");
  app.Add("--parameters", flags->parameters, "in place of a file: how many parameters the model has");
  app.Add("--architecture", flags->architecture, "in place of the file's, such as BertForSequenceClassification")
      .Takes("NAME");
  AddRunFlags(app, *flags);
  AddModelFlags(app, flags->model);
  AddSimulationFlags(app, *flags);
  app.Add("--device", flags->options.device, "a GPU by name, such as V100-16GB or A100-40GB").Takes("CARD");
  app.Add("--capacity", flags->capacity, "memory of the device, such as 16GiB, in place of the table's").Takes("SIZE");
  app.Add("--context", flags->context, "what the CUDA context takes of it, such as 500MiB").Takes("SIZE");
  app.Add("--gpu", flags->options.gpu, "whose library buffers: V100, T4, A100, H100, H200");
  app.Add("--conf", flags->options.run.conf, "settings, as for PYTORCH_CUDA_ALLOC_CONF").Takes("CONF");
  app.Add("--capture", flags->capture,
          "writes the dry run, for explain, replay, sweep and check: a PyTorch snapshot, or our recording "
          "(.ashlar)")
      .Takes("FILE");
  app.Add("--report", flags->page, "an HTML file: the page of ashlar report, with the estimate and its dry run")
      .Takes("FILE")
      .NotEmpty();
  app.Add("--json", flags->json, "print JSON (ashlar schema estimate)");
  AddJsonFile(app, flags->json_to);
  flags->command = app;
  app.OnRun([flags] { return RunEstimate(*flags); });
}

}  // namespace ashlar::cli
