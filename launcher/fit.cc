// `ashlar fit`: the program as it is, each change alone, then sets of them, the cheapest first, until one fits.
#include "commands/fit/fit.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "allocator/base/units.h"
#include "analyzer/gpus/gpu_table.h"
#include "console/command.h"
#include "console/given_command.h"
#include "console/installed_files.h"
#include "console/output_file.h"
#include "console/progress_line.h"
#include "launcher/apart.h"
#include "launcher/fit_cards.h"
#include "launcher/fit_page.h"
#include "launcher/fit_runs.h"
#include "launcher/fit_search.h"
#include "launcher/fit_settings.h"
#include "launcher/fit_vary.h"
#include "launcher/fit_write.h"
#include "launcher/hollow_program.h"
#include "launcher/launcher.h"
#include "launcher/machine.h"
#include "launcher/program.h"
#include "launcher/rerun.h"
#include "launcher/results.h"
#include "launcher/run_program.h"
#include "launcher/value_flags.h"

namespace ashlar::cli {
namespace {

using answers::FitAnswer;
using answers::FitChange;
using answers::FitValues;
using answers::FitVerdict;
using Clock = std::chrono::steady_clock;

constexpr double kDefaultBudget = 180;  // seconds
constexpr char kSetGoal[] = "set", kBatchGoal[] = "largest-batch", kCardsGoal[] = "cards", kLongestGoal[] = "longest";
constexpr char kNeedsCard[] =
    "give the card that the program must fit on, as in: ashlar fit --device T4 -- python train.py";
constexpr char kNeedsTorch[] =
    "no process trained or called a model of PyTorch, or its Python could not be reached: there is nothing to change "
    "from outside";

constexpr char kTakesAll[] =
    "the program as it is found no memory in room that no program fills: of those that take a share of the device fit "
    "knows vLLM's engine alone; ashlar dry-run says what it takes of a card";
constexpr char kNeedsLength[] =
    "--goal longest: give the argument of the length, as in: ashlar fit --device T4 --goal longest "
    "--vary=--length:128..8192 -- python train.py";
constexpr char kNeedsNoCard[] =
    "--goal cards: looks for the least card of the table: leave --device and --capacity out; or give --vary={}:1..8 "
    "for "
    "the least number of such cards, as in: ashlar fit --device T4 --goal cards --vary={}:1..8 -- torchrun "
    "--nproc-per-node {} train.py";
constexpr char kNeedsGoal[] = "--with: goes with --vary and with --goal largest-batch, longest and cards";

struct FitFlags {
  std::vector<std::string> program;
  MachineFlags machine;
  HollowSettings settings;
  std::optional<std::uint64_t> jobs;
  std::string budget;
  std::string allow;
  std::string only;
  std::string with;
  std::string goal = kSetGoal;
  std::string vary;
  std::string page;
  std::string write;
  std::string host_memory;
  std::string format = "text";
  bool json = false;
  std::string json_to;
};

double SecondsSince(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// "90", "90s", "3min", "1h".
absl::StatusOr<double> ReadBudget(const std::string& text) {
  if (text.empty()) return kDefaultBudget;
  absl::string_view number = text;
  double unit = 1;
  if (absl::ConsumeSuffix(&number, "min") || absl::ConsumeSuffix(&number, "m")) {
    unit = 60;
  } else if (absl::ConsumeSuffix(&number, "h")) {
    unit = 3600;
  } else {
    absl::ConsumeSuffix(&number, "s");
  }
  double value = 0;
  if (absl::SimpleAtod(number, &value) && value > 0 && value * unit < 1e7) return value * unit;
  return absl::InvalidArgumentError(absl::StrCat("--budget: '", text, "' is no time, such as 90s, 3min or 1h"));
}

// Where it is not given, all that this host has.
absl::Status ReadHostMemory(const std::string& text, std::uint64_t& bytes) {
  bytes = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  if (text.empty()) return absl::OkStatus();
  const absl::StatusOr<std::uint64_t> size = ParseBytes(text);
  if (!size.ok()) return OfFlag("--host-memory", size.status());
  bytes = *size;
  return absl::OkStatus();
}

std::vector<std::string> ReadList(const std::string& text) {
  return text.empty() ? std::vector<std::string>() : absl::StrSplit(text, ',');
}

std::string Answered(const FitFlags& flags, const FitAnswer& answer) {
  if (flags.json || flags.format == "json") return report::ToJson(answer);
  return flags.format == "markdown" ? report::ToMarkdown(answer) : report::ToText(answer);
}

int FinishFit(const FitFlags& flags, const FitAnswer& answer) {
  ProgressLine::End();
  const bool is_printed = Print(Answered(flags, answer));
  const bool is_written = WriteJson(flags.json_to, [&] { return report::ToJson(answer); });
  if (!is_printed || !is_written) return kUnreadable;
  const bool fits = answer.varied.has_value()  ? answer.varied->found.has_value()
                    : answer.cards.has_value() ? !answer.cards->front().card.empty()
                                               : answer.base.verdict == FitVerdict::kFits || answer.set.has_value();
  return fits ? kOk : kCheckFailed;
}

struct FitAsked {
  double budget = 0;
  std::vector<std::string> allowed;
  std::vector<std::string> only;
  std::vector<std::string> with;
  std::optional<Vary> vary;
  HollowMachine card;
  std::uint64_t host_memory_bytes = 0;
  std::optional<PythonProgram> python;  // of --write
};

absl::Status CheckGoal(const FitFlags& flags, const HollowMachine& card) {
  const bool varies = !flags.vary.empty();
  if (!flags.with.empty() && flags.goal == kSetGoal && !varies) return absl::InvalidArgumentError(kNeedsGoal);
  if (flags.goal == kLongestGoal && !varies) return absl::InvalidArgumentError(kNeedsLength);
  if (flags.goal == kCardsGoal && !varies) {
    return card.has_limit ? absl::InvalidArgumentError(kNeedsNoCard) : absl::OkStatus();
  }
  return card.has_limit ? absl::OkStatus() : absl::InvalidArgumentError(kNeedsCard);
}

absl::StatusOr<FitAsked> ReadFitFlags(const FitFlags& flags) {
  if (absl::Status status = NeedsProgram("fit", flags.program); !status.ok()) return status;
  FitAsked out;
  if (absl::Status status = CheckValues(flags.settings.values); !status.ok()) return status;
  const absl::StatusOr<double> budget = ReadBudget(flags.budget);
  if (!budget.ok()) return budget.status();
  out.budget = *budget;
  out.allowed = ReadList(flags.allow);
  out.only = ReadList(flags.only);
  out.with = ReadList(flags.with);
  if (!flags.vary.empty()) {
    absl::StatusOr<Vary> vary = ReadVary(flags.vary);
    if (!vary.ok()) return vary.status();
    out.vary = *std::move(vary);
  }
  if (flags.jobs.has_value() && (*flags.jobs == 0 || *flags.jobs > kMostThreads)) {
    return absl::InvalidArgumentError(absl::StrCat("--jobs: ", *flags.jobs, " is not between 1 and ", kMostThreads));
  }
  if (absl::Status kept = NoInputIsWritten(
          flags.program, {{"--json-to", flags.json_to}, {"--report", flags.page}, {"--write", flags.write}});
      !kept.ok())
    return kept;
  if (absl::Status status = ReadHostMemory(flags.host_memory, out.host_memory_bytes); !status.ok()) return status;
  if (!flags.write.empty()) {
    absl::StatusOr<PythonProgram> python = ReadPythonProgram(flags.program);
    if (!python.ok()) return python.status();
    out.python = *std::move(python);
  }
  absl::StatusOr<HollowMachine> card = ReadMachine(flags.machine);
  if (!card.ok()) return card.status();
  if (absl::Status status = CheckGoal(flags, *card); !status.ok()) return status;
  out.card = *std::move(card);
  return out;
}

// The program as it is, in ample room; its exit code in `code`.
absl::StatusOr<FitBase> RunBase(const FitFlags& flags, const FitAsked& asked, const std::string& path,
                                const RunFolder& folder, SignalRelay& relay, int& code) {
  const HollowMachine& card = asked.card;
  const absl::StatusOr<HollowFiles> files = FindHollowFiles();
  if (!files.ok()) return files.status();
  if (absl::Status status = WriteFile(folder.path() + "/machine", InAmpleRoom(card).text); !status.ok()) return status;
  FitBase out;
  out.card = card;
  out.host_memory_bytes = asked.host_memory_bytes;
  HollowSettings settings = flags.settings;
  settings.history = 0;  // of peaks alone
  settings.names.looks = "off";
  out.launch = {path, asked.vary.has_value() ? FirstProgram(flags.program, *asked.vary) : flags.program,
                HollowEnvironment(settings, *files, folder.path()),
                /*has_fixed_addresses=*/flags.settings.reproducible, /*prints_to_stderr=*/true};
  out.launch.environment["ASHLAR_FIT"] = "watch";
  out.launch.environment["ASHLAR_FIT_ROOM"] = "1";
  if (!settings.skip_init) out.launch.environment["ASHLAR_FIT_DRAWN"] = folder.path();
  const Clock::time_point began = Clock::now();
  const absl::StatusOr<int> ended = RunProgram(out.launch, folder, relay);
  if (!ended.ok()) return ended.status();
  code = *ended;
  out.seconds = SecondsSince(began);
  out.results = ReadResults(folder.path());
  out.host_bytes = LargestChildBytes() * std::max<std::size_t>(out.results.runs.size(), 1);
  if (std::optional<FitFacts> facts = ReadFitFacts(folder.path()); facts.has_value()) out.facts = *std::move(facts);
  return out;
}

// "length" is "length=512" as well.
bool IsNamed(const FitChange& change, const std::string& name) {
  return change.name == name || absl::StartsWith(change.name, name + "=");
}

// InvalidArgument where it names one that is not there.
absl::Status AreKnown(const char* flag, const std::vector<std::string>& named, const std::vector<FitChange>& changes) {
  for (const std::string& name : named) {
    if (std::any_of(changes.begin(), changes.end(), [&](const FitChange& one) { return IsNamed(one, name); })) continue;
    std::vector<std::string> names;
    for (const FitChange& change : changes) names.push_back(change.name);
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": there is no change '", name, "': ", absl::StrJoin(names, ", ")));
  }
  return absl::OkStatus();
}

// Those that --only does not name are not made.
void KeepOnly(const std::vector<std::string>& only, std::vector<FitChange>& changes) {
  for (FitChange& change : changes) {
    const auto names_it = [&](const std::string& name) { return IsNamed(change, name); };
    if (only.empty() || std::any_of(only.begin(), only.end(), names_it)) continue;
    if (change.applies) change.why_not = "--only leaves it out";
    change.applies = false;
  }
}

// Where lengths vary, a run says of its own order alone whether it fits: from here on the longest samples come first.
void PutWorstFirst(const VaryLimits& limits, FitRuns& runs, FitAnswer& answer) {
  runs.PutAlways("worst-first");
  answers::FitRow worst = runs.Run({{}}, {.most_seconds = limits.most_seconds}).front();
  if (!worst.why_not.empty()) {
    runs.PutAlways("");
    answer.why_no_worst = worst.why_not;
    return;
  }
  answer.has_worst_first = true;
  answer.own_order_bytes = answer.base.peak_reserved_bytes;
  answer.base = std::move(worst);
}

// nullopt: only its memory was given.
std::optional<answers::FitSpeed> SpeedOfCard(const HollowMachine& card) {
  const absl::StatusOr<gpus::Gpu> gpu = gpus::GpuNamed(card.card);
  if (card.card.empty() || !gpu.ok()) return std::nullopt;
  const gpus::GpuSpeed speed = gpus::SpeedOf(*gpu);
  return answers::FitSpeed{speed.operations.value, speed.narrow_operations.value, speed.memory_bytes.value};
}

FitAnswer AnswerOf(const FitFlags& flags, const FitAsked& asked, const FitBase& base, const FitRuns& runs) {
  FitAnswer out;
  out.program = flags.program;
  out.card = asked.card.card.empty() ? "a device" : asked.card.card;
  out.total_bytes = asked.card.has_limit ? asked.card.RoomBytes() : 0;
  out.speed = SpeedOfCard(asked.card);
  out.held = base.facts.held;
  out.outside_bytes = asked.card.context.bytes;
  out.host_memory_bytes = asked.host_memory_bytes;
  out.steps = base.facts.steps;
  out.stop_step = runs.stop();
  out.changes = base.facts.changes;
  out.allowed = asked.allowed;
  out.with = asked.with;
  out.base = runs.BaseRow();
  return out;
}

// What the goal asks for.
absl::Status Answer(const FitFlags& flags, const FitAsked& asked, const FitBase& base, const VaryLimits& limits,
                    const answers::Progress& progress, FitRuns& runs, FitAnswer& answer) {
  if (asked.vary.has_value() || flags.goal == kBatchGoal) {
    const FitValues::Goal goal = flags.goal == kCardsGoal     ? FitValues::Goal::kFewest
                                 : flags.goal == kLongestGoal ? FitValues::Goal::kLongest
                                                              : FitValues::Goal::kLargest;
    absl::StatusOr<FitValues> varied =
        asked.vary.has_value() ? RunValues(*asked.vary, {flags.program, asked.with, goal, flags.machine}, limits, runs)
                               : RunBatches(base.facts.batch, asked.with, limits, runs);
    if (!varied.ok()) return varied.status();
    answer.varied = *std::move(varied);
    return absl::OkStatus();
  }
  if (flags.goal == kCardsGoal) {
    absl::StatusOr<std::vector<answers::FitCard>> cards =
        RunCards(flags.machine, limits.most_seconds, asked.budget, runs, answer);
    if (!cards.ok()) return cards.status();
    answer.cards = *std::move(cards);
    return absl::OkStatus();
  }
  if (answer.base.verdict == FitVerdict::kFits) return absl::OkStatus();
  SetSearch search(runs, limits.most_seconds, asked.budget, answer);
  if (absl::Status status = search.RunRows(); !status.ok()) return status;
  if (answer.base.verdict == FitVerdict::kFits) return absl::OkStatus();
  answer.estimates = Estimates({asked.card, limits.most_seconds, search.SecondsLeft()}, answer, progress, runs);
  search.CountRows();
  search.FindSet();
  search.CountSet();
  answer.settings =
      BestSettings({asked.card, limits.most_seconds, search.SecondsLeft()}, answer, search.proof(), progress, runs);
  return absl::OkStatus();
}

// Nothing where there is no set, which is told.
absl::Status WriteLauncher(const FitFlags& flags, const FitAsked& asked, const FitAnswer& answer) {
  if (!asked.python.has_value()) return absl::OkStatus();
  if (!answer.set.has_value()) {
    std::fprintf(stderr, "ashlar: --write: there is no set of changes to run with: %s was not written\n",
                 flags.write.c_str());
    return absl::OkStatus();
  }
  absl::Status status = WriteFile(flags.write, LauncherText(*asked.python, answer.set->changes));
  return status.ok() ? status : OfFlag("--write", status);
}

int RunFit(const FitFlags& flags) {
  const absl::StatusOr<FitAsked> asked = ReadFitFlags(flags);
  if (!asked.ok()) return Fail(absl::IsUnavailable(asked.status()) ? kUnreadable : kUsage, asked.status());
  const FoundProgram found = FindProgram(flags.program.front(), Under::kHollow);
  if (!found.why_not.empty()) return Fail(found.exit_code, absl::InvalidArgumentError(found.why_not));
  if (!Walls::AreKnown()) {
    return Fail(kUnreadable,
                absl::UnavailableError("this Linux has no Landlock, which keeps a program that is run again from "
                                       "writing over what it wrote"));
  }
  const absl::StatusOr<std::unique_ptr<RunFolder>> folder = RunFolder::Make();
  if (!folder.ok()) return Fail(kUnreadable, folder.status());
  const absl::StatusOr<std::unique_ptr<CudnnServer>> workspaces = ServeWorkspaces(flags.settings, (*folder)->path());
  if (!workspaces.ok()) return Fail(kUnreadable, workspaces.status());
  SignalRelay relay((*folder)->path());
  int code = 0;
  absl::StatusOr<FitBase> base = RunBase(flags, *asked, found.path, **folder, relay, code);
  if (!base.ok()) return Fail(kUnreadable, base.status());
  if (code != 0 && RanOut(base->results)) return Fail(code, absl::UnavailableError(kTakesAll));
  if (code != 0) {
    return Fail(code, absl::UnavailableError(absl::StrCat("the program as it is ended with exit code ", code,
                                                          ", in room for all that it asked for: fix that first")));
  }
  if (base->facts.steps == 0) return Fail(kUnreadable, absl::UnavailableError(kNeedsTorch));
  absl::Status known = AreKnown("--only", asked->only, base->facts.changes);
  known.Update(AreKnown("--with", asked->with, base->facts.changes));
  if (!known.ok()) return Fail(kUsage, known);
  KeepOnly(asked->only, base->facts.changes);
  ProgressLine line;
  const std::function<void(const std::string&)> progress = line.Shower();
  const std::size_t at_once =
      flags.jobs.has_value() ? static_cast<std::size_t>(*flags.jobs) : RerunsAtOnce(base->host_bytes);
  FitRuns runs(*base, at_once, relay, progress);
  FitAnswer answer = AnswerOf(flags, *asked, *base, runs);
  const VaryLimits limits = {.seconds = asked->budget, .most_seconds = MostSecondsOf(base->seconds)};
  if (base->facts.lengths_vary && !asked->vary.has_value()) PutWorstFirst(limits, runs, answer);
  if (absl::Status status = Answer(flags, *asked, *base, limits, progress, runs, answer); !status.ok()) {
    return Fail(absl::IsInvalidArgument(status) ? kUsage : kUnreadable, status);
  }
  if (!flags.page.empty()) {
    const absl::StatusOr<std::string> html = FitPage({asked->card, limits.most_seconds}, answer, progress, runs);
    absl::Status status = html.ok() ? WriteFile(flags.page, *html) : html.status();
    if (!status.ok()) return Fail(kUnreadable, OfFlag("--report", status));
  }
  if (absl::Status status = WriteLauncher(flags, *asked, answer); !status.ok()) return Fail(kUnreadable, status);
  answer.runs = runs.runs() + 1;
  if (*workspaces != nullptr) answer.workspaces = WorkspacesText(runs.cudnn());
  answer.kept_away.assign(runs.kept_away().begin(), runs.kept_away().end());
  answer.not_sent.assign(runs.not_sent().begin(), runs.not_sent().end());
  return FinishFit(flags, answer);
}

}  // namespace

void AddFit(CommandLine& line, std::vector<std::string> program) {
  Command app = line.AddCommand("fit", "what to change in a program so that it fits on a card, by runs without a GPU");
  app.Example("ashlar fit --device T4 -- python train.py");
  auto flags = std::make_shared<FitFlags>();
  flags->program = std::move(program);
  app.TakesProgram(flags->program);
  AddMachineFlags(app, flags->machine);
  AddHollowFlags(app, flags->settings);
  app.Add("--allow", flags->allow,
          "kinds of altered results that a set may have, with commas: precision, optimizer, batch-norm, "
          "loss-weights")
      .Takes("KINDS")
      .NotEmpty();
  app.Add("--only", flags->only, "changes to try, and no others: half-batch,checkpointing").Takes("CHANGES").NotEmpty();
  app.Add("--goal", flags->goal,
          "a set of changes that fits; the largest batch; the longest value of --vary; the least card, or with --vary "
          "the "
          "least number of cards")
      .OneOf({kSetGoal, kBatchGoal, kLongestGoal, kCardsGoal});
  app.Add("--with", flags->with, "changes that each run of --vary and of these goals has: half-batch,checkpointing")
      .Takes("CHANGES")
      .NotEmpty();
  app.Add("--vary", flags->vary,
          "an argument of the program to try: --vary=--batch-size:1..256 finds the largest that fits, :1,2,4 runs each")
      .Takes("ARGUMENT:VALUES")
      .NotEmpty();
  app.Add("--host-memory", flags->host_memory,
          "what the host has for what changes keep there (default: this host's memory)")
      .Takes("SIZE")
      .NotEmpty();
  app.Add("--budget", flags->budget, "time for the runs after the first one, such as 90s, 3min (default) or 1h")
      .Takes("TIME")
      .NotEmpty();
  app.Add("--jobs", flags->jobs, "runs side by side (default: as many as processors and the host's memory allow)");
  app.Add("--report", flags->page, "an HTML file: the page of ashlar report, with the rows and the run of the set")
      .Takes("FILE")
      .NotEmpty();
  app.Add("--write", flags->write, "a script of Python that runs the program with the set, its files untouched")
      .Takes("FILE")
      .NotEmpty();
  app.Add("--format", flags->format, "text, json, or markdown to paste into an issue")
      .OneOf({"text", "json", "markdown"});
  app.Add("--json", flags->json, "print JSON (ashlar schema fit)");
  AddJsonFile(app, flags->json_to);
  app.OnRun([flags] { return RunFit(*flags); });
}

}  // namespace ashlar::cli
