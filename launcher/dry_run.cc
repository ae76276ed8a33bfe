#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "allocator/base/units.h"
#include "commands/explain/page/page_file.h"
#include "commands/explain/suggestions.h"
#include "console/command.h"
#include "console/given_command.h"
#include "console/installed_files.h"
#include "console/load_trace.h"
#include "console/output_file.h"
#include "console/progress_line.h"
#include "launcher/card_runs.h"
#include "launcher/cards.h"
#include "launcher/cudnn_workspaces.h"
#include "launcher/dry_run_report.h"
#include "launcher/explain.h"
#include "launcher/hollow_program.h"
#include "launcher/launcher.h"
#include "launcher/machine.h"
#include "launcher/program.h"
#include "launcher/rank_choice.h"
#include "launcher/rank_runs.h"
#include "launcher/results.h"
#include "launcher/run_program.h"
#include "launcher/setting_run.h"
#include "launcher/value_flags.h"

namespace ashlar::cli {
namespace {

constexpr int kTooMuch = 4;                      // the exit code of --fail-on oom and --max-reserved
constexpr std::chrono::seconds kMostAsking{20};  // cuDNN, about the plans of a process
constexpr char kOom[] = "oom";
constexpr char kRandomRouting[] = "random:";
constexpr std::uint64_t kMostSeed = std::uint64_t{1} << 62;
constexpr char kCardsNeedRoom[] =
    "--cards: goes with a run without a card: leave out --device, --capacity and a profile's total_bytes";
constexpr char kNoHistory[] =
    "no history: the program's calls that allocate were not seen, neither by PyTorch nor by libashlar_record.so";

struct DryRunFlags {
  std::vector<std::string> program;
  MachineFlags machine;
  CardFlags cards;
  RankFlags ranks;
  HollowSettings settings;
  std::string fail_on;
  std::string max_reserved;
  std::optional<std::uint64_t> max_reserved_bytes;
  std::string output;
  std::string page;
  FormatFlags format;
  std::string json_to;
};

// Of a card that was named: PyTorch warns of it once, among all else that the program prints.
std::string CardLacksKernels(const RunReport& report) {
  const std::optional<TorchInfo>& torch = report.explained->torch;
  if (report.machine.card.empty() || !torch.has_value()) return "";
  if (HasKernelsFor(torch->archs, report.machine.ran_as.capability).value_or(true)) return "";
  return absl::StrCat("PyTorch ", torch->version, " as it is here has no kernels for ", report.machine.card,
                      ": what is said of its memory is of a build that has (here are ",
                      absl::StrJoin(torch->archs, ", "), ")");
}

// Ranks mostly have the same plans: those are asked about once.
void AskAboutPlans(RunResults& results) {
  std::vector<const LibraryCalls*> asked;
  for (ProcessRun& run : results.runs) {
    if (!run.books.has_value()) continue;
    LibraryCalls& calls = run.books->library_calls;
    if (calls.cudnn.is_in_peak) continue;  // it was asked while it ran
    const auto same = std::find_if(asked.begin(), asked.end(),
                                   [&](const LibraryCalls* other) { return other->cudnn_plans == calls.cudnn_plans; });
    calls.cudnn = same != asked.end() ? (*same)->cudnn : AskCudnn(calls.cudnn_plans, kMostAsking);
    asked.push_back(&calls);
  }
}

// What is needed to run the program once more.
struct CardsOfReport {
  const CardChoice& choice;
  const FirstRun& first;
  SignalRelay& relay;
};

void Explain(const ProcessMemory& memory, const answers::Progress& progress, RunReport& report) {
  absl::StatusOr<answers::Explanation> explanation = ExplainProcess(*report.explained, memory, progress);
  if (explanation.ok()) {
    report.explanation = *std::move(explanation);
  } else {
    report.notes.push_back(
        absl::StrCat("the history of ", report.explained->Name(), ": ", explanation.status().message()));
  }
}

// Of a program that a failed request ended: under the setting that gets past it the program itself says what follows.
void TrySetting(const CardsOfReport& run, ProcessMemory memory, const answers::Progress& progress, RunReport& report) {
  if (!report.explanation.has_value() || report.explained->failures.empty() || !EndedEarly(report).has_value()) return;
  const std::optional<std::string> conf = answers::SettingToTry(*report.explanation);
  if (!conf.has_value()) return;
  const std::string why_not = WhyNotRunAgain(run.choice, run.first);
  const absl::StatusOr<answers::SettingRun> run_again =
      why_not.empty() ? RunUnderSetting(*conf, run.first, memory, run.relay, progress, report)
                      : absl::UnavailableError(why_not);
  if (!run_again.ok()) {
    report.notes.push_back(absl::StrCat("not run again under ", *conf, ": ", run_again.status().message(),
                                        "; dry-run --conf ", *conf, " does it"));
    return;
  }
  memory.run_again = *run_again;
  Explain(memory, progress, report);
}

// As fit takes it: the same program on the same card, under the same settings.
std::string FitCommand(const DryRunFlags& flags) {
  std::string out = "ashlar fit";
  const auto add = [&out](const char* flag, const std::string& value) {
    if (!value.empty()) absl::StrAppend(&out, " ", flag, " ", ShellWord(value));
  };
  add("--device", flags.machine.device);
  add("--capacity", flags.machine.capacity);
  add("--profile", flags.machine.profile);
  if (flags.machine.devices.has_value()) add("--devices", absl::StrCat(*flags.machine.devices));
  add("--conf", flags.settings.conf.value_or(""));
  for (const std::string& value : flags.settings.values) add("--value", value);
  if (flags.settings.workspaces != kNoWorkspaces) add("--workspaces", flags.settings.workspaces);
  if (flags.settings.skip_init) absl::StrAppend(&out, " --skip-init");
  absl::StrAppend(&out, " --");
  for (const std::string& word : flags.program) absl::StrAppend(&out, " ", ShellWord(word));
  return out;
}

// A program of PyTorch whose request failed: its changes can be tried.
void PointToFit(const DryRunFlags& flags, RunReport& report) {
  const bool has_failed = report.explanation.has_value() && report.explained->torch.has_value() &&
                          !report.explained->failures.empty() && !report.ranks.has_value();
  if (!has_failed) return;
  report.explanation->verdict.next = {"to try each change of this program that may make it fit, without a GPU:",
                                      {FitCommand(flags)},
                                      /*is_command=*/true};
}

void AddExplanation(const DryRunFlags& flags, const CardsOfReport& run, const answers::Progress& progress,
                    RunReport& report) {
  report.explained = ToExplain(report.results);
  report.notes = NotKept(report.results);
  if (report.explained == nullptr) {
    if (UsedADevice(report) && report.notes.empty()) report.notes.emplace_back(kNoHistory);
    return;
  }
  ProcessMemory memory{.context_bytes = report.machine.context.bytes,
                       .in_use_bytes = report.machine.in_use.bytes,
                       .addresses = report.machine.addresses,
                       .is_drawn = !flags.page.empty()};
  if (report.machine.has_limit) memory.total_bytes = report.machine.total.bytes;
  // Of several devices it is not known here which one is explained.
  if (report.machine.device_count == 1) {
    memory.other_processes = static_cast<std::size_t>(std::count_if(
        report.results.runs.begin(), report.results.runs.end(),
        [&report](const ProcessRun& other) { return &other != report.explained && other.UsedADevice(); }));
  }
  Explain(memory, progress, report);
  TrySetting(run, std::move(memory), progress, report);
  PointToFit(flags, report);
  if (const std::string lacks = CardLacksKernels(report); !lacks.empty()) report.notes.push_back(lacks);
  if (report.machine.has_limit || report.explained->history.empty() || !report.explained->failures.empty()) return;
  AddCards(run.choice, run.first, run.relay, progress, report);
}

absl::Status WriteDryRunPage(const DryRunFlags& flags, const RunReport& report) {
  if (flags.page.empty()) return absl::OkStatus();
  std::vector<answers::Explanation> explanations;
  if (report.explanation.has_value()) explanations.push_back(*report.explanation);
  const std::string program = absl::StrJoin(flags.program, " ");
  const absl::StatusOr<std::string> html =
      PageOf(explanations, {.title = absl::StrCat("dry run of ", program), .dry_run = ToJson(report)});
  return html.ok() ? WriteFile(flags.page, *html) : html.status();
}

// Whether --calls has all calls; else a note says how many it lacks.
bool HasAllCalls(const DryRunFlags& flags, RunReport& report) {
  std::uint64_t lost = 0;
  for (const ProcessRun& run : report.results.runs) lost += run.books.has_value() ? run.books->calls_lost : 0;
  if (lost == 0) return true;
  report.notes.push_back(
      absl::StrCat("--calls: ", FormatCount(lost), " calls could not be written to ", flags.settings.calls));
  return false;
}

// Of the process that took most on a device: what PyTorch reserved; of a program without PyTorch what was in use.
std::uint64_t PeakReserved(const RunReport& report) {
  std::uint64_t peak = 0;
  for (const ProcessRun& run : report.results.runs) {
    if (run.torch.has_value()) {
      for (const TorchDevice& device : run.torch->devices) peak = std::max(peak, device.peak_reserved_bytes);
    } else if (run.books.has_value()) {
      for (const AccountedDevice& device : run.books->devices) peak = std::max(peak, device.peak_bytes);
    }
  }
  return peak;
}

// The program's own exit code, but for what it could not know of.
int ExitCodeOf(const DryRunFlags& flags, const RunReport& report, bool is_kept) {
  if (report.exit_code != kOk) return report.exit_code;
  if (!flags.fail_on.empty() && FitOf(report) == FitState::kDoesNot) return kTooMuch;
  if (flags.max_reserved_bytes.has_value() && PeakReserved(report) > *flags.max_reserved_bytes) return kTooMuch;
  return is_kept ? kOk : kUnreadable;
}

// Text goes beside the program's own output on stderr.
bool PrintDryRun(const FormatFlags& format, const RunReport& report) {
  if (format.IsMarkdown()) return Print(ToMarkdown(report));
  return format.IsJson() ? Print(ToJson(report)) : std::fputs(ToText(report).c_str(), stderr) >= 0;
}

int FinishDryRun(const DryRunFlags& flags, const CardsOfReport& run, RunReport report) {
  ProgressLine line;
  AddExplanation(flags, run, line.Shower(), report);
  if (const std::uint64_t peak = PeakReserved(report); peak > flags.max_reserved_bytes.value_or(peak)) {
    report.notes.push_back(absl::StrCat("--max-reserved: ", FormatBytes(peak), " were reserved, ",
                                        FormatBytes(peak - *flags.max_reserved_bytes), " too much"));
  }
  for (const std::string& file : report.results.unreadable) report.notes.push_back(file);
  bool is_kept = HasAllCalls(flags, report);
  if (!flags.output.empty()) {
    const absl::StatusOr<std::string> kept = KeepResults(report.results, flags.output);
    is_kept = is_kept && kept.ok();
    report.notes.push_back(kept.ok() ? absl::StrCat("kept: ", *kept)
                                     : absl::StrCat("-o: ", std::string(kept.status().message())));
  }
  const absl::Status page = WriteDryRunPage(flags, report);
  ProgressLine::End();
  if (!page.ok()) Fail(kUnreadable, OfFlag("--report", page));
  is_kept = is_kept && page.ok();
  const bool is_printed = PrintDryRun(flags.format, report);
  const bool is_written = WriteJson(flags.json_to, [&] { return ToJson(report); });
  return ExitCodeOf(flags, report, is_kept && is_printed && is_written);
}

// What a process that died could not say of its devices.
void CompleteLeft(const HollowMachine& machine, RunResults& results) {
  for (ProcessRun& run : results.runs) {
    for (AccountedDevice& device : run.left_held) {
      device.total_bytes = machine.total.bytes;
      device.context_bytes = machine.context.bytes;
    }
  }
}

// Processes add to the file.
absl::Status ClearCalls(const std::string& file) {
  return file.empty() || absl::StrContains(file, "%p") ? absl::OkStatus() : WriteFile(file, "");
}

// On a terminal, where somebody waits: what is about to run is no GPU.
void SayWhatRuns(const HollowMachine& machine) {
  if (isatty(STDERR_FILENO) != 1) return;
  const std::string name = machine.card.empty() ? "a device" : machine.card;
  std::fprintf(stderr, "ashlar: a dry run on %s%s%s that is not there: memory is exact, values are made up\n",
               name.c_str(), machine.has_limit ? " of " : "",
               machine.has_limit ? FormatBytes(machine.total.bytes).c_str() : "");
}

absl::Status CheckRouting(const std::string& rule) {
  std::uint64_t seed = 0;
  const bool is_known = rule.empty() || rule == "balanced" || rule == "worst" ||
                        (absl::StartsWith(rule, kRandomRouting) &&
                         absl::SimpleAtoi(rule.substr(sizeof(kRandomRouting) - 1), &seed) && seed <= kMostSeed);
  return is_known ? absl::OkStatus()
                  : absl::InvalidArgumentError(absl::StrCat(
                        "--routing: '", rule, "' is none of balanced, random:SEED, such as random:7, and worst"));
}

// The folder that the ranks share, and the variables of the first.
absl::Status PrepareRanks(const RankChoice& ranks, const std::string& run_folder, Launch& launch) {
  if (!ranks.is_asked()) return absl::OkStatus();
  const std::string folder = RanksFolder(run_folder);
  for (auto& [name, value] : RankEnvironment(ranks, ranks.first(), folder)) launch.environment[name] = value;
  std::error_code error;
  std::filesystem::create_directory(folder, error);
  return error ? absl::UnavailableError(absl::StrCat(folder, " cannot be made: ", error.message())) : absl::OkStatus();
}

int RunDryRun(DryRunFlags& flags) {
  if (absl::Status status = NeedsProgram("dry-run", flags.program); !status.ok()) return Fail(kUsage, status);
  if (absl::Status status = ReadSize("--max-reserved", flags.max_reserved, {}, flags.max_reserved_bytes);
      !status.ok()) {
    return Fail(kUsage, status);
  }
  if (!flags.fail_on.empty() && flags.fail_on != kOom) {
    return Fail(kUsage, absl::InvalidArgumentError(
                            absl::StrCat("--fail-on: '", flags.fail_on, "' is not known: give --fail-on oom")));
  }
  if (absl::Status status = CheckNames(flags.settings.names); !status.ok()) return Fail(kUsage, status);
  if (absl::Status status = CheckValues(flags.settings.values); !status.ok()) return Fail(kUsage, status);
  if (absl::Status status = CheckRouting(flags.settings.routing); !status.ok()) return Fail(kUsage, status);
  // Before the program writes what its own words name.
  const absl::Status kept =
      NoInputIsWritten(flags.program, {{"--report", flags.page}, {"--json-to", flags.json_to}, {"-o", flags.output}});
  if (!kept.ok()) return Fail(kUsage, kept);
  const absl::StatusOr<RankChoice> ranks = ReadRankChoice(flags.ranks);
  if (!ranks.ok()) return Fail(kUsage, ranks.status());
  if (ranks->is_asked()) flags.machine.devices = static_cast<std::uint64_t>(ranks->per_node);
  absl::StatusOr<HollowMachine> machine = ReadMachine(flags.machine);
  if (!machine.ok()) return Fail(absl::IsUnavailable(machine.status()) ? kUnreadable : kUsage, machine.status());
  const absl::StatusOr<CardChoice> choice = ReadCardChoice(flags.cards);
  if (!choice.ok()) return Fail(kUsage, choice.status());
  if (choice->is_asked && machine->has_limit) return Fail(kUsage, absl::InvalidArgumentError(kCardsNeedRoom));
  const absl::StatusOr<HollowFiles> files = FindHollowFiles();
  if (!files.ok()) return Fail(kUnreadable, files.status());
  const FoundProgram found = FindProgram(flags.program.front(), Under::kHollow);
  if (!found.why_not.empty()) return Fail(found.exit_code, absl::InvalidArgumentError(found.why_not));
  const absl::StatusOr<std::unique_ptr<RunFolder>> folder = RunFolder::Make();
  if (!folder.ok()) return Fail(kUnreadable, folder.status());
  const absl::StatusOr<std::unique_ptr<CudnnServer>> workspaces = ServeWorkspaces(flags.settings, (*folder)->path());
  if (!workspaces.ok()) return Fail(kUnreadable, workspaces.status());
  SignalRelay relay((*folder)->path());
  if (absl::Status status = WriteFile((*folder)->path() + "/machine", machine->text); !status.ok()) {
    return Fail(kUnreadable, status);
  }
  if (absl::Status status = ClearCalls(flags.settings.calls); !status.ok()) return Fail(kUnreadable, status);
  FirstRun first;
  first.machine = flags.machine;
  first.launch = {found.path, flags.program, HollowEnvironment(flags.settings, *files, (*folder)->path()),
                  /*has_fixed_addresses=*/flags.settings.reproducible,
                  /*prints_to_stderr=*/flags.format.IsJson() || flags.format.IsMarkdown()};
  if (absl::Status status = PrepareRanks(*ranks, (*folder)->path(), first.launch); !status.ok()) {
    return Fail(kUnreadable, status);
  }
  SayWhatRuns(*machine);
  const auto began = std::chrono::steady_clock::now();
  const absl::StatusOr<int> code = RunProgram(first.launch, **folder, relay);
  if (!code.ok()) return Fail(kUnreadable, code.status());
  first.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  first.host_bytes = LargestChildBytes();
  RunReport report;
  report.program = flags.program;
  report.routing = flags.settings.routing;
  report.values = flags.settings.values;
  report.has_workspaces = *workspaces != nullptr;
  report.exit_code = *code;
  report.machine = *std::move(machine);
  report.host_bytes = first.host_bytes;
  report.results = ReadResults((*folder)->path());
  CompleteLeft(report.machine, report.results);
  AskAboutPlans(report.results);
  RoleEnds roles;
  if (ranks->is_asked()) {
    ProgressLine line;
    roles = RunRoles(*ranks, (*folder)->path(), first, relay, line.Shower(), report);
  }
  return FinishDryRun(flags, {*choice, first, relay}, std::move(report));
}

}  // namespace

void AddDryRun(CommandLine& line, std::vector<std::string> program) {
  Command app = line.AddCommand("dry-run", "run a program, unchanged, without a GPU");
  app.Example("ashlar dry-run --device A100-80GB -- python train.py");
  auto flags = std::make_shared<DryRunFlags>();
  flags->program = std::move(program);
  app.TakesProgram(flags->program);
  const Flag devices = AddMachineFlags(app, flags->machine);
  AddRankFlags(app, devices, flags->ranks);
  AddCardFlags(app, flags->cards);
  AddHollowFlags(app, flags->settings);
  app.Add("--history", flags->settings.history, "events that PyTorch records at most (default 1,000,000)");
  AddNamesFlags(app, flags->settings.names);
  app.Add("--routing", flags->settings.routing,
          "how the routers of a mixture of experts choose: balanced, random:SEED or worst (all tokens to the same "
          "experts)")
      .Takes("RULE")
      .NotEmpty();
  app.Add("--calls", flags->settings.calls,
          "a file: writes each call on device memory; %p in its name is the process's number")
      .Takes("FILE")
      .NotEmpty();
  app.Add("--max-reserved", flags->max_reserved,
          "exit code 4 where a process reserved more, such as 14GiB, and the program still ended with 0")
      .Takes("SIZE");
  app.Add("--fail-on", flags->fail_on,
          "oom: exit code 4 where a request found no memory and the program still ended with 0")
      .NotEmpty();
  app.Add("-o,--output", flags->output, "keeps the history: a file of one process, a folder of several")
      .Takes("FILE")
      .NotEmpty();
  app.Add("--report", flags->page, "an HTML file: the page of ashlar report, with what the run took and the cards")
      .Takes("FILE")
      .NotEmpty();
  AddFormatFlags(app, "print JSON (ashlar schema dry-run) on standard output; the program's goes to standard error",
                 flags->format);
  AddJsonFile(app, flags->json_to);
  app.OnRun([flags] { return RunDryRun(*flags); });
}

}  // namespace ashlar::cli
