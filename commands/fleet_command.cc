#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "allocator/base/units.h"
#include "allocator/device/sim_device.h"
#include "analyzer/formats/input_file.h"
#include "commands/commands.h"
#include "commands/explain/explain.h"
#include "commands/explain/page/page.h"
#include "commands/explain/page/page_file.h"
#include "commands/fleet/files.h"
#include "commands/fleet/fleet.h"
#include "commands/fleet/fleet_rank.h"
#include "commands/fleet/fleet_run.h"
#include "commands/fleet/link.h"
#include "commands/shared/input.h"
#include "commands/shared/layout.h"
#include "console/command.h"
#include "console/installed_files.h"
#include "console/load_trace.h"
#include "console/output_file.h"
#include "console/progress_line.h"
#include "console/terminal.h"

namespace ashlar::cli {
namespace {

struct FleetFlags {
  std::vector<std::string> inputs;
  std::optional<std::uint64_t> jobs;
  std::string mpi = "auto";
  std::string results;
  std::optional<std::string> confs;
  bool json = false;
  std::string json_to;
  std::string page;
  ReplayFlags replay;
};

absl::StatusOr<answers::RankOptions> ReadFleetFlags(const FleetFlags& flags) {
  answers::RankOptions out;
  absl::StatusOr<answers::ReplaySettings> settings = ReadReplayFlags(flags.replay);
  if (!settings.ok()) return settings.status();
  out.replay = *std::move(settings);
  out.replay.threads = 1;  // the processes share the cores
  if (flags.confs.has_value()) {
    absl::StatusOr<std::vector<std::string>> confs = ReadConfs(*flags.confs);
    if (!confs.ok()) return OfFlag("--confs", confs.status());
    for (const std::string& conf : *confs) {
      const policy::Compat compat = out.replay.overrides.compat.value_or(policy::Compat::kTorch210);
      const absl::StatusOr<policy::Options> options = policy::ParseConf(conf, compat, policy::Keys::kAshlar);
      if (!options.ok()) return OfFlag("--confs", options.status());
    }
    out.confs = *std::move(confs);
  }
  if (flags.jobs.has_value() && (*flags.jobs == 0 || *flags.jobs > kMostThreads)) {
    return absl::InvalidArgumentError(absl::StrCat("--jobs: ", *flags.jobs, " is not between 1 and ", kMostThreads));
  }
  return out;
}

// All that a result depends on besides its file.
std::string SettingsText(const FleetFlags& flags, const answers::RankOptions& options) {
  const ReplayFlags& r = flags.replay;
  const auto number = [](const auto& value) { return value.has_value() ? absl::StrCat(*value) : std::string("-"); };
  return absl::StrCat("ashlar ", ASHLAR_VERSION, ", results ", fleet::kRankTextVersion, "; compat ", r.compat,
                      "; order ", r.free_order, "; addresses ", r.segment_addresses, "; conf ", r.conf.value_or("-"),
                      "; capacity ", r.capacity, "; context ", r.context, "; costs ",
                      device::PrintCosts(options.replay.device_costs), "; fraction ", number(r.memory_fraction),
                      "; device ", r.device, "; window ", r.window, "; events ", number(r.max_events), "; confs ",
                      absl::StrJoin(options.confs, ";"));
}

// The file's name stands before the message already.
absl::Status WithoutName(const std::string& path, const absl::Status& status) {
  absl::string_view message = status.message();
  absl::ConsumePrefix(&message, absl::StrCat(path, ": "));
  return absl::Status(status.code(), message);
}

fleet::RankResult SummarizeFile(const std::string& path, const FleetFlags& flags, const answers::RankOptions& options) {
  absl::StatusOr<formats::InputBytes> bytes = LoadBytes(path, options.replay);
  if (!bytes.ok()) return WithoutName(path, bytes.status());
  answers::InputRule rule = answers::ExplainedInputs();
  // What memory is free now is no rule: an answer does not depend on it.
  rule.limits.max_events = flags.replay.max_events.value_or(kHeldEvents);
  rule.fits = [&flags](formats::InputKind kind) {
    return kind == formats::InputKind::kPlainTrace ? NoSnapshotFlags(flags.replay) : absl::OkStatus();
  };
  const absl::StatusOr<answers::Input> input = PartOf(path, answers::LoadInput(*bytes, rule), options.replay);
  bytes->Clear();
  if (!input.ok()) return WithoutName(path, input.status());
  return answers::SummarizeRank(*input, options);
}

// The files of folders and patterns are looked at where an output is there already.
absl::Status KeepsRanks(const FleetFlags& flags) {
  std::error_code error;
  const bool is_there = (!flags.page.empty() && std::filesystem::exists(flags.page, error)) ||
                        (!flags.json_to.empty() && std::filesystem::exists(flags.json_to, error));
  const absl::StatusOr<fleet::FileListing> listing =
      is_there ? fleet::ListFiles(flags.inputs) : absl::StatusOr<fleet::FileListing>(fleet::FileListing{});
  if (!listing.ok()) return absl::OkStatus();  // told when they are read
  std::vector<std::string> paths;
  for (const fleet::FileStamp& file : listing->files) paths.push_back(file.path);
  return NoInputIsWritten(paths, {{"--report", flags.page}, {"--json-to", flags.json_to}});
}

// One line, also where many processes write.
void TellLine(const std::string& text) {
  const std::string line = absl::StrCat("ashlar: ", report::Printable(text), "\n");
  std::fwrite(line.data(), 1, line.size(), stderr);
}

// Which module joins the processes; empty: this one is alone. Of many processes the first alone says what is wrong.
absl::StatusOr<std::string> ModuleFor(const FleetFlags& flags, const std::optional<fleet::FleetLaunch>& launch) {
  if (flags.mpi == "off" || (flags.mpi == "auto" && !launch.has_value())) return std::string();
  const absl::StatusOr<std::string> module = FindMpiModule();
  if (module.ok() || !launch.has_value()) return module;
  return absl::Status(module.status().code(),
                      absl::StrCat("started by ", launch->launcher,
                                   launch->size > 0 ? absl::StrCat(" as ", launch->size, " processes") : "", ": ",
                                   module.status().message()));
}

std::size_t ProcessesFor(const FleetFlags& flags, bool is_launched) {
  if (flags.jobs.has_value()) return static_cast<std::size_t>(*flags.jobs);
  return is_launched ? 1 : std::max<std::size_t>(std::thread::hardware_concurrency(), 1);
}

// Of a launcher's processes the output is no terminal of the user's, even where it looks like one.
void TakeAsFile() {
  setenv("NO_COLOR", "1", /*overwrite=*/1);
  report::SetTextWidth(std::nullopt);
}

absl::Status WriteFleetPage(const FleetFlags& flags, const answers::FleetAnswer& answer) {
  if (flags.page.empty()) return absl::OkStatus();
  report::PageFacts facts;
  facts.title = absl::StrCat("fleet of ", absl::StrJoin(flags.inputs, " "));
  facts.fleet = report::ToJson(answer);
  const absl::StatusOr<std::string> html = PageOf({}, std::move(facts));
  return html.ok() ? WriteFile(flags.page, *html) : html.status();
}

// The page comes last: one that cannot be written costs no answer.
int PrintFleet(const FleetFlags& flags, const answers::FleetAnswer& answer) {
  const bool is_written = WriteJson(flags.json_to, [&] { return report::ToJson(answer); });
  const bool is_printed =
      Print(flags.json ? report::ToJson(answer) : Colored(report::Fitted(report::ToText(answer), {})));
  if (absl::Status status = WriteFleetPage(flags, answer); !status.ok()) {
    return Fail(kUnreadable, OfFlag("--report", status));
  }
  if (!is_written || !is_printed) return kUnreadable;
  return answer.broken.size() == answer.members.size() ? kUnreadable : kOk;
}

int RunFleetCommand(const FleetFlags& flags) {
  const std::optional<fleet::FleetLaunch> launch = fleet::FindLaunch();
  const bool is_silent = flags.mpi != "off" && launch.has_value() && launch->rank > 0;
  const auto fail = [&](int code, const absl::Status& status) { return is_silent ? code : Fail(code, status); };
  absl::StatusOr<answers::RankOptions> options = ReadFleetFlags(flags);
  if (!options.ok()) return fail(kUsage, options.status());
  if (absl::Status status = KeepsRanks(flags); !status.ok()) return fail(kUsage, status);
  const absl::StatusOr<std::string> module = ModuleFor(flags, launch);
  if (!module.ok()) return fail(kUsage, module.status());

  if (!module->empty()) TakeAsFile();
  std::unique_ptr<ProgressLine> progress;  // a thread: once all processes are forked
  fleet::FleetRun run;
  run.inputs = flags.inputs;
  run.processes = ProcessesFor(flags, !module->empty());
  run.mpi_module = *module;
  if (launch.has_value()) run.launched = launch->size;
  run.results = flags.results;
  run.settings = SettingsText(flags, *options);
  run.summarize = [&flags, &options](const std::string& path) { return SummarizeFile(path, flags, *options); };
  run.tell = TellLine;
  run.progress = [&progress](std::size_t done, std::size_t files) {
    if (progress == nullptr) progress = std::make_unique<ProgressLine>();
    progress->Show(absl::StrCat(FormatCount(done), " of ", FormatCount(files), " files"));
  };
  const absl::StatusOr<std::optional<answers::FleetAnswer>> answer = fleet::RunFleet(run);
  if (absl::IsFailedPrecondition(answer.status())) return fail(kUsage, answer.status());
  if (!answer.ok()) return Fail(kUnreadable, answer.status());
  return answer->has_value() ? PrintFleet(flags, **answer) : kOk;
}

}  // namespace

void AddFleet(CommandLine& line) {
  Command app = line.AddCommand("fleet", "explain the ranks of one job together; alone, or under mpirun or srun");
  app.Example("mpirun ashlar fleet snapshots/ --results done/");
  auto flags = std::make_shared<FleetFlags>();
  app.Add("files", flags->inputs, "folders, patterns in quotes, or files: one a rank").Required();
  app.Add("--jobs", flags->jobs,
          "processes that read files (default: one a core; under a launcher one for each process it started); the "
          "result does not depend on it");
  app.Add("--results", flags->results, "a folder that keeps each file's result as it comes: a rerun goes on there")
      .Takes("FOLDER")
      .NotEmpty();
  app.Add("--confs", flags->confs, "the settings to try: a file with one a line, or a list with ; between")
      .Takes("CONFS");
  app.Add("--mpi", flags->mpi, "join other processes by MPI: auto (default: where a launcher started several), on, off")
      .OneOf({"auto", "on", "off"});
  app.Add("--json", flags->json, "print JSON (ashlar schema fleet)");
  AddJsonFile(app, flags->json_to);
  app.Add("--report", flags->page, "an HTML file: the page of ashlar report, with the ranks over time")
      .Takes("FILE")
      .NotEmpty();
  AddColorFlag(app);
  AddReplayFlags(app, flags->replay);
  app.OnRun([flags] { return RunFleetCommand(*flags); });
}

}  // namespace ashlar::cli
