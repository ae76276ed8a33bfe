#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "commands/commands.h"
#include "commands/explain/explain.h"
#include "commands/explain/explain_report.h"
#include "commands/explain/explain_together.h"
#include "commands/explain/page/page_file.h"
#include "console/command.h"
#include "console/load_trace.h"
#include "console/memory_end.h"
#include "console/output_file.h"
#include "console/progress_line.h"
#include "console/terminal.h"
#include "estimator/model.h"
#include "estimator/report/explain_model.h"

namespace ashlar::cli {
namespace {

struct ExplainFlags {
  std::vector<std::string> inputs;
  FormatFlags format;
  std::string json_to;
  bool is_brief = false;
  bool is_whole = false;
  std::string device_used;
  std::vector<std::string> ranks;
  std::string model;
  std::optional<std::uint64_t> jobs;
  bool opens_page = false;
  std::string page;
  ReplayFlags replay;
};

using Explanations = std::vector<answers::Explanation>;

// What a single file says is told with its name.
absl::StatusOr<Explanations> ExplainInputs(const ExplainFlags& flags, answers::ExplainSettings options) {
  std::vector<answers::NamedInput> inputs;
  for (const std::string& file : flags.inputs) {
    absl::StatusOr<answers::Input> input = LoadToExplain(file, flags.replay, options.replay);
    if (!input.ok()) return input.status();
    inputs.push_back({file, *std::move(input)});
  }
  if (inputs.size() == 1) options.replay = NamingProgress(flags.inputs.front(), std::move(options.replay));
  return answers::ExplainTogether(inputs, options);
}

// The peaks of another rank's file.
absl::StatusOr<analyses::RankPeak> ReadRank(const std::string& file, int rank, const answers::Progress& progress) {
  answers::ReplaySettings settings;
  settings.progress = progress;
  const absl::StatusOr<answers::TracedRun> run = LoadTrace(file, {}, settings);
  if (!run.ok()) return run.status();
  return analyses::RankPeak{rank, run->timeline.allocated_peak().bytes, run->timeline.reserved_peak().bytes};
}

// Which tensors of the model, if one is given, have the size of the request that failed.
absl::Status AddModel(const std::string& file, Explanations& explanations) {
  if (file.empty()) return absl::OkStatus();
  const absl::StatusOr<std::string> bytes = ReadSmallInput(file);
  if (!bytes.ok()) return bytes.status();
  const absl::StatusOr<estimate::Model> model = estimate::ReadModel(*bytes, {});
  if (!model.ok()) return absl::Status(model.status().code(), absl::StrCat(file, ": ", model.status().message()));
  for (answers::Explanation& explanation : explanations) {
    std::optional<std::string> sentence = estimate::ModelEvidence(*model, explanation.failure);
    if (sentence.has_value()) explanation.verdict.evidence.push_back(*std::move(sentence));
  }
  return absl::OkStatus();
}

absl::Status ReadRanks(const std::vector<std::string>& files, answers::ExplainSettings& options) {
  for (const std::string& file : files) {
    const int rank = static_cast<int>(options.other_ranks.size()) + 1;
    const absl::StatusOr<analyses::RankPeak> peak = ReadRank(file, rank, options.replay.progress);
    if (!peak.ok()) return peak.status();
    options.other_ranks.push_back(*peak);
    KeepOfMemory(0);
  }
  return absl::OkStatus();
}

std::string AsJson(const Explanations& explanations, const ExplainFlags& flags) {
  return report::PrintExplanations(explanations, /*as_json=*/true, flags.inputs.size() > 1);
}

std::string Printed(const Explanations& explanations, const ExplainFlags& flags) {
  if (flags.format.IsMarkdown()) return report::ToMarkdown(explanations);
  if (flags.format.IsJson()) return AsJson(explanations, flags);
  if (flags.is_brief) return Colored(report::PrintBriefly(explanations));
  const std::string text = report::PrintExplanations(explanations, /*as_json=*/false);
  return Colored(flags.is_whole ? text : FirstScreen(text));
}

absl::Status KeepsInputs(const ExplainFlags& flags) {
  std::vector<std::string> read = flags.inputs;
  read.insert(read.end(), flags.ranks.begin(), flags.ranks.end());
  read.push_back(flags.model);
  return NoInputIsWritten(read, {{"--report", flags.page}, {"--json-to", flags.json_to}});
}

absl::Status ShowPage(const ExplainFlags& flags, const Explanations& explanations) {
  if (!flags.opens_page && flags.page.empty()) return absl::OkStatus();
  std::vector<std::string> names;
  for (const std::string& input : flags.inputs) names.push_back(report::PageInputOf(input).name);
  const absl::StatusOr<std::string> html = PageOf(explanations, {.title = absl::StrJoin(names, ", ")});
  if (!html.ok()) return OfFlag(flags.page.empty() ? "--open" : "--report", html.status());
  if (!flags.page.empty()) {
    if (absl::Status status = WriteFile(flags.page, *html); !status.ok()) return OfFlag("--report", status);
  }
  return flags.opens_page ? OpenPage(*html) : absl::OkStatus();
}

int RunExplain(const ExplainFlags& flags) {
  absl::StatusOr<answers::ReplaySettings> settings = ReadReplayFlags(flags.replay);
  if (!settings.ok()) return Fail(kUsage, settings.status());
  if (flags.jobs.has_value() && (*flags.jobs == 0 || *flags.jobs > kMostThreads)) {
    return Fail(kUsage, absl::InvalidArgumentError(
                            absl::StrCat("--jobs: ", *flags.jobs, " is not between 1 and ", kMostThreads)));
  }
  settings->threads = static_cast<std::size_t>(flags.jobs.value_or(0));
  answers::ExplainSettings options{.replay = *std::move(settings)};
  options.other_device = answers::TakeOtherDevice(options.replay);
  if (absl::Status status = ReadSize("--device-used", flags.device_used, InUseSizes(), options.device_used_bytes);
      !status.ok())
    return Fail(kUsage, status);
  if (absl::Status status = KeepsInputs(flags); !status.ok()) return Fail(kUsage, status);
  if (flags.opens_page || !flags.page.empty()) options.picture = answers::PictureLimits{};
  ProgressLine line;
  options.replay.progress = line.Shower();
  if (absl::Status status = ReadRanks(flags.ranks, options); !status.ok()) return FailLoad(status);
  absl::StatusOr<Explanations> explanations = ExplainInputs(flags, options);
  if (!explanations.ok()) return FailLoad(explanations.status());
  if (absl::Status status = AddModel(flags.model, *explanations); !status.ok()) return Fail(kUnreadable, status);
  const bool is_written = WriteJson(flags.json_to, [&] { return AsJson(*explanations, flags); });
  const bool is_printed = Print(Printed(*explanations, flags));
  if (absl::Status status = ShowPage(flags, *explanations); !status.ok()) return Fail(kUnreadable, status);
  return is_printed && is_written ? kOk : kUnreadable;
}

}  // namespace

void AddExplain(CommandLine& line) {
  Command app = line.AddCommand("explain", "explain an out-of-memory message, a snapshot or a trace");
  app.Example("ashlar explain snapshot.pickle --capacity 16GiB");
  auto flags = std::make_shared<ExplainFlags>();
  app.Add("input", flags->inputs,
          "files, or - for standard input; a log and the snapshot of the same failure make one answer")
      .Required();
  const auto [json, format] = AddFormatFlags(app, "print JSON (ashlar schema explain)", flags->format);
  AddJsonFile(app, flags->json_to);
  app.Add("--brief", flags->is_brief, "the verdict, what to do, where the memory went and why; no more")
      .Excludes(json)
      .Excludes(format);
  app.Add("--all", flags->is_whole, "the whole answer on a terminal too, which else gets its first 20 lines");
  AddColorFlag(app);
  app.Add("--device-used", flags->device_used,
          "memory in use on the device by all processes, as nvidia-smi shows it, such as 14.2GiB")
      .Takes("SIZE");
  app.Add("--rank", flags->ranks, "the file of another rank of the same job; give it once for each")
      .Takes("FILE")
      .OneValueEach();
  app.Add("--model", flags->model,
          "the model that ran, as for estimate: names its tensors of the failed request's size")
      .Takes("FILE");
  app.Add("--jobs", flags->jobs,
          "threads that replay settings (default: one a core); the result does not depend on it");
  app.Add("--open", flags->opens_page, "shows the page of ashlar report in a browser as well");
  app.Add("--report", flags->page, "an HTML file: the page of ashlar report, beside the answer")
      .Takes("FILE")
      .NotEmpty();
  AddReplayFlags(app, flags->replay);
  app.OnRun([flags] { return RunExplain(*flags); });
}

}  // namespace ashlar::cli
