#include "analyzer/cli/explain.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "analyzer/answers/explain.h"
#include "analyzer/cli/command.h"
#include "analyzer/cli/load_trace.h"
#include "analyzer/cli/memory_end.h"
#include "analyzer/cli/progress_line.h"
#include "analyzer/cli/size_flag.h"
#include "analyzer/estimate/model_file.h"
#include "analyzer/estimate/report/explain_model.h"
#include "analyzer/readers/input_file.h"
#include "analyzer/report/explain_report.h"

namespace ashlar::cli {
namespace {

struct ExplainFlags {
  std::string input;
  bool json = false;
  std::string device_used;
  std::vector<std::string> ranks;
  std::string model;
  ReplayFlags replay;
};

using Explanations = std::vector<answers::Explanation>;

absl::StatusOr<Explanations> ExplainInput(const std::string& bytes, const ReplayFlags& flags,
                                          const answers::ExplainOptions& options) {
  answers::InputRule rule = answers::ExplainedInputs();
  rule.fits = [&flags](readers::InputKind kind) {
    return kind == readers::InputKind::kPlainTrace ? NoSnapshotFlags(flags) : absl::OkStatus();
  };
  const absl::StatusOr<answers::Input> input = answers::LoadInput(bytes, rule);
  if (!input.ok()) return input.status();
  return answers::Explain(*input, options);
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
  const absl::StatusOr<std::string> bytes = readers::ReadInput(file);
  if (!bytes.ok()) return bytes.status();
  const absl::StatusOr<estimate::Model> model = estimate::ReadModel(*bytes, {});
  if (!model.ok()) return absl::Status(model.status().code(), absl::StrCat(file, ": ", model.status().message()));
  for (answers::Explanation& explanation : explanations) estimate::AddModel(*model, explanation);
  return absl::OkStatus();
}

absl::Status ReadRanks(const std::vector<std::string>& files, answers::ExplainOptions& options) {
  for (const std::string& file : files) {
    const int rank = static_cast<int>(options.other_ranks.size()) + 1;
    const absl::StatusOr<analyses::RankPeak> peak = ReadRank(file, rank, options.replay.progress);
    if (!peak.ok()) return peak.status();
    options.other_ranks.push_back(*peak);
    KeepOfMemory(0);
  }
  return absl::OkStatus();
}

int RunExplain(const ExplainFlags& flags) {
  absl::StatusOr<answers::ReplaySettings> settings = ReadReplayFlags(flags.replay);
  if (!settings.ok()) return Fail(kUsage, settings.status());
  answers::ExplainOptions options{.replay = *std::move(settings)};
  if (absl::Status status = ReadSize("--device-used", flags.device_used, {.begin_bytes = 0}, options.device_used_bytes);
      !status.ok())
    return Fail(kUsage, status);
  ProgressLine line;
  options.replay.progress = line.Shower();
  if (absl::Status status = ReadRanks(flags.ranks, options); !status.ok()) return FailLoad(status);
  const absl::StatusOr<std::string> bytes = LoadBytes(flags.input, options.replay);
  if (!bytes.ok()) return Fail(kUnreadable, bytes.status());
  options.replay = NamingProgress(flags.input, std::move(options.replay));
  absl::StatusOr<Explanations> explanations = ExplainInput(*bytes, flags.replay, options);
  if (!explanations.ok()) return FailInput(flags.input, explanations.status());
  if (absl::Status status = AddModel(flags.model, *explanations); !status.ok()) return Fail(kUnreadable, status);
  return Print(report::PrintExplanations(*explanations, flags.json)) ? kOk : kUnreadable;
}

}  // namespace

void AddExplain(CommandLine& line) {
  Command app = line.AddCommand("explain", "explain an out-of-memory message, a snapshot or a trace");
  app.Example("ashlar explain snapshot.pickle --capacity 16GiB");
  auto flags = std::make_shared<ExplainFlags>();
  app.Add("input", flags->input, "a file, or - for standard input").Required();
  app.Add("--json", flags->json, "print JSON (docs/schemas/explain.schema.json)");
  app.Add("--device-used", flags->device_used,
          "memory in use on the device by all processes, as nvidia-smi shows it, such as 14.2GiB");
  app.Add("--rank", flags->ranks, "the file of another rank of the same job; give it once for each").OneValueEach();
  app.Add("--model", flags->model,
          "the model that ran, as for estimate: names its tensors of the failed request's size");
  AddReplayFlags(app, flags->replay);
  app.OnRun([flags] { return RunExplain(*flags); });
}

}  // namespace ashlar::cli
