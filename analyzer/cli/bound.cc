#include "analyzer/cli/bound.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analyzer/cli/command.h"
#include "analyzer/cli/load_trace.h"
#include "analyzer/cli/progress_line.h"
#include "analyzer/readers/plain/minimalloc_csv.h"
#include "analyzer/readers/sniff.h"
#include "analyzer/report/bound_report.h"

namespace ashlar::cli {
namespace {

// Steps of the search that a core of 2023 takes in a second; counted, so that the answer does not depend on the
// machine.
constexpr double kStepsPerSecond = 300e6;
constexpr double kMostSeconds = 86'400;

struct BoundFlags {
  std::string input;
  double seconds = 5;
  std::string csv;
  bool json = false;
  ReplayFlags replay;
};

absl::StatusOr<report::BoundReport> BoundOf(const std::string& bytes, const BoundFlags& flags,
                                            const report::ExplainOptions& options) {
  const auto max_steps = static_cast<std::uint64_t>(flags.seconds * kStepsPerSecond);
  if (readers::Sniff(bytes) != readers::InputKind::kPackingCsv) {
    const absl::StatusOr<report::TracedRun> run = TraceOf(flags.input, bytes, flags.replay, options);
    if (!run.ok()) return run.status();
    return report::BoundOfTrace(flags.input, *run, max_steps, NamingProgress(flags.input, options).progress);
  }
  absl::StatusOr<readers::PackingProblem> problem = readers::ParseMinimallocCsv(bytes);
  absl::StatusOr<report::BoundReport> report =
      problem.ok() ? report::BoundOfProblem(flags.input, *std::move(problem), max_steps,
                                            NamingProgress(flags.input, options).progress)
                   : absl::StatusOr<report::BoundReport>(problem.status());
  if (report.ok()) return report;
  return absl::Status(report.status().code(), absl::StrCat(flags.input, ": ", report.status().message()));
}

int RunBound(const BoundFlags& flags) {
  if (!(flags.seconds >= 0 && flags.seconds <= kMostSeconds)) {
    return Fail(kUsage, absl::InvalidArgumentError(
                            absl::StrCat("--seconds: ", flags.seconds, " is not between 0 and ", kMostSeconds)));
  }
  absl::StatusOr<report::ExplainOptions> options = ReadReplayFlags(flags.replay);
  if (!options.ok()) return Fail(kUsage, options.status());
  ProgressLine line;
  options->progress = line.Shower();
  const absl::StatusOr<std::string> bytes = LoadBytes(flags.input, *options);
  if (!bytes.ok()) return Fail(kUnreadable, bytes.status());
  const absl::StatusOr<report::BoundReport> report = BoundOf(*bytes, flags, *options);
  if (!report.ok()) return FailLoad(report.status());
  if (!flags.csv.empty()) {
    if (absl::Status status = WriteFile(flags.csv, readers::WriteMinimallocCsv(report->problem)); !status.ok()) {
      return Fail(kUnreadable, absl::UnavailableError(absl::StrCat("--csv: ", status.message())));
    }
  }
  return Print(flags.json ? report::ToJson(*report) : report::ToText(*report)) ? kOk : kUnreadable;
}

}  // namespace

void AddBound(CommandLine& line) {
  Command app = line.AddCommand("bound", "how little memory a trace needs, and which setting comes closest");
  auto flags = std::make_shared<BoundFlags>();
  app.Add("input", flags->input, "a snapshot, a request trace or a packing problem (CSV), or - for stdin").Required();
  app.Add("--seconds", flags->seconds, "how long to search, counted in steps of the search (default 5)");
  app.Add("--csv", flags->csv, "write the lifetimes with their offsets to this file (id,lower,upper,size,offset)");
  app.Add("--json", flags->json, "print JSON (docs/schemas/bound.schema.json)");
  AddPolicyFlags(app, flags->replay);
  app.OnRun([flags] { return RunBound(*flags); });
}

}  // namespace ashlar::cli
