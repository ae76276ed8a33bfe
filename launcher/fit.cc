// `ashlar fit`: the program as it is, each change alone, then sets of them, the cheapest first, until one fits.
#include "commands/fit/fit.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "commands/fit/fit_sets.h"
#include "console/command.h"
#include "console/given_command.h"
#include "console/installed_files.h"
#include "console/output_file.h"
#include "console/progress_line.h"
#include "launcher/apart.h"
#include "launcher/fit_runs.h"
#include "launcher/fit_vary.h"
#include "launcher/hollow_program.h"
#include "launcher/launcher.h"
#include "launcher/machine.h"
#include "launcher/program.h"
#include "launcher/rerun.h"
#include "launcher/results.h"
#include "launcher/run_program.h"

namespace ashlar::cli {
namespace {

using answers::FitAnswer;
using answers::FitChange;
using answers::FitRow;
using answers::FitSet;
using answers::FitVerdict;
using Clock = std::chrono::steady_clock;
using Asked = FitRuns::Asked;

constexpr double kDefaultBudget = 180;  // seconds
constexpr char kNeedsCard[] =
    "give the card that the program must fit on, as in: ashlar fit --device T4 -- python train.py";
constexpr char kNeedsTorch[] =
    "no process trained or called a model of PyTorch, or its Python could not be reached: there is nothing to change "
    "from outside";

struct FitFlags {
  std::vector<std::string> program;
  MachineFlags machine;
  HollowSettings settings;
  std::optional<std::uint64_t> jobs;
  std::string budget;
  std::string allow;
  std::string only;
  std::string goal = "set";
  std::string vary;
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

std::vector<std::string> ReadList(const std::string& text) {
  return text.empty() ? std::vector<std::string>() : absl::StrSplit(text, ',');
}

// The search, which adds to the answer what it tried.
class FitSearch {
 public:
  FitSearch(FitRuns& runs, double most_seconds, double budget, FitAnswer& answer)
      : runs_(runs), most_seconds_(most_seconds), budget_(budget), answer_(answer) {}

  // The program as it is on the card, and each change alone. Unavailable where the program does not come to its end
  // when it is run again as it is.
  absl::Status RunRows() {
    std::vector<Asked> asked = {{{}, /*on_card=*/true, /*is_whole=*/true}};
    for (const FitChange& change : answer_.changes) {
      if (change.applies) asked.push_back({{change.name}});
    }
    std::vector<FitRow> rows = runs_.Run(asked, Most());
    if (!rows.front().why_not.empty()) {
      return absl::UnavailableError(
          absl::StrCat("the program cannot be run again beside its first run: ", rows.front().why_not));
    }
    answer_.base.verdict = rows.front().verdict;
    answer_.base.failed_step = rows.front().failed_step;
    answer_.base.ran_on_card = true;
    answer_.rows.assign(std::make_move_iterator(rows.begin() + 1), std::make_move_iterator(rows.end()));
    return absl::OkStatus();
  }

  // What the set that was found computes, beside the program as it is.
  void CountOperations() {
    if (!answer_.set.has_value() || IsOver()) return;
    const std::vector<std::uint64_t> counts = runs_.CountOperations({{}, answer_.set->changes}, Most());
    answer_.base.operations = counts[0];
    answer_.set->operations = counts[1];
  }

  void FindSet() {
    for (const FitRow& row : answer_.rows) {
      if (row.verdict != FitVerdict::kFits || !answer_.ChangeNamed(row.changes.front()).IsFree()) continue;
      answer_.sets.push_back(row);
      if (Prove(row)) return;
    }
    std::vector<FitSet> waiting = answers::SetsByPrice(answer_);
    std::reverse(waiting.begin(), waiting.end());  // the cheapest last
    while (!waiting.empty() && !answer_.set.has_value()) {
      std::vector<FitSet> next;
      while (!waiting.empty() && next.size() < runs_.at_once()) {
        if (!IsOver() || FitsAlone(waiting.back())) {
          next.push_back(std::move(waiting.back()));
        } else {
          ++answer_.untried;
        }
        waiting.pop_back();
      }
      TrySets(next);
    }
    if (answer_.set.has_value()) answer_.untried = 0;  // what is left is dearer
  }

 private:
  bool IsOver() const { return SecondsSince(began_) > budget_; }
  double Most() const { return std::min(most_seconds_, std::max(budget_ - SecondsSince(began_), 1.0)); }

  // Its changes that are not free do by themselves, as is known of a single one.
  bool FitsAlone(const FitSet& set) const {
    const FitRow* row = KnownRow(set.priced);
    return row != nullptr && row->verdict == FitVerdict::kFits;
  }

  void TrySets(const std::vector<FitSet>& sets) {
    std::vector<std::vector<std::string>> changes;
    for (const FitSet& set : sets) changes.push_back(FitsAlone(set) ? set.priced : set.changes);
    for (const FitRow& row : RowsOf(changes)) {
      if (row.verdict != FitVerdict::kFits && row.changes.size() == 1) continue;  // it has its row
      answer_.sets.push_back(row);
      if (row.verdict == FitVerdict::kFits && Prove(WithoutUseless(row))) return;
    }
  }

  // A set of one change has its row already.
  const FitRow* KnownRow(const std::vector<std::string>& changes) const {
    for (const std::vector<FitRow>* rows : {&answer_.rows, &answer_.sets}) {
      for (const FitRow& row : *rows) {
        if (row.changes == changes && row.verdict != FitVerdict::kNotKnown) return &row;
      }
    }
    return nullptr;
  }

  std::vector<FitRow> RowsOf(const std::vector<std::vector<std::string>>& sets) {
    std::vector<Asked> asked;
    for (const std::vector<std::string>& set : sets) {
      if (KnownRow(set) == nullptr) asked.push_back({set});
    }
    std::vector<FitRow> ran = asked.empty() ? std::vector<FitRow>() : runs_.Run(asked, Most());
    std::vector<FitRow> out;
    std::size_t next = 0;
    for (const std::vector<std::string>& set : sets) {
      const FitRow* known = KnownRow(set);
      out.push_back(known != nullptr ? *known : ran[next++]);
    }
    return out;
  }

  // Without the changes that cost nothing and are not needed either.
  FitRow WithoutUseless(const FitRow& row) {
    std::vector<std::vector<std::string>> fewer;
    if (IsOver()) return row;
    for (const std::string& name : row.changes) {
      if (row.changes.size() > 1 && answer_.ChangeNamed(name).IsFree()) fewer.push_back(Less(row.changes, name));
    }
    std::vector<std::string> kept = row.changes;
    std::optional<FitRow> best;
    const std::vector<FitRow> ran = RowsOf(fewer);
    for (std::size_t i = 0; i < ran.size(); ++i) {
      if (ran[i].verdict != FitVerdict::kFits) continue;
      for (const std::string& name : row.changes) {
        if (std::find(fewer[i].begin(), fewer[i].end(), name) == fewer[i].end()) kept = Less(kept, name);
      }
      if (!best.has_value()) best = ran[i];
    }
    if (!best.has_value()) return row;
    if (kept.empty() || kept == best->changes) return *best;
    const FitRow least = RowsOf({kept}).front();
    return least.verdict == FitVerdict::kFits ? least : *best;
  }

  static std::vector<std::string> Less(std::vector<std::string> names, const std::string& name) {
    std::erase(names, name);
    return names;
  }

  // On the card itself, to the program's end.
  bool Prove(const FitRow& row) {
    const FitRow proof = runs_.Run({{row.changes, /*on_card=*/true, /*is_whole=*/true}}, most_seconds_).front();
    if (row.changes != answer_.sets.back().changes) answer_.sets.push_back(row);
    if (proof.verdict == FitVerdict::kFits) {
      answer_.set = proof;
      return true;
    }
    answer_.sets.back().verdict = proof.verdict;
    answer_.sets.back().why_not = proof.why_not;
    return false;
  }

  FitRuns& runs_;
  const double most_seconds_;
  const double budget_;
  const Clock::time_point began_ = Clock::now();
  FitAnswer& answer_;
};

std::string Answered(const FitFlags& flags, const FitAnswer& answer) {
  if (flags.json || flags.format == "json") return report::ToJson(answer);
  return flags.format == "markdown" ? report::ToMarkdown(answer) : report::ToText(answer);
}

int FinishFit(const FitFlags& flags, const FitAnswer& answer) {
  ProgressLine::End();
  const bool is_printed = Print(Answered(flags, answer));
  const bool is_written = WriteJson(flags.json_to, [&] { return report::ToJson(answer); });
  if (!is_printed || !is_written) return kUnreadable;
  const bool fits = answer.varied.has_value() ? answer.varied->largest.has_value()
                                              : answer.base.verdict == FitVerdict::kFits || answer.set.has_value();
  return fits ? kOk : kCheckFailed;
}

struct FitAsked {
  double budget = 0;
  std::vector<std::string> allowed;
  std::vector<std::string> only;
  std::optional<Vary> vary;
  bool wants_batch = false;
  HollowMachine card;
};

absl::StatusOr<FitAsked> ReadFitFlags(const FitFlags& flags) {
  if (absl::Status status = NeedsProgram("fit", flags.program); !status.ok()) return status;
  FitAsked out;
  const absl::StatusOr<double> budget = ReadBudget(flags.budget);
  if (!budget.ok()) return budget.status();
  out.budget = *budget;
  out.allowed = ReadList(flags.allow);
  out.only = ReadList(flags.only);
  out.wants_batch = flags.goal == "largest-batch" && flags.vary.empty();
  if (!flags.vary.empty()) {
    absl::StatusOr<Vary> vary = ReadVary(flags.vary);
    if (!vary.ok()) return vary.status();
    out.vary = *std::move(vary);
  }
  if (flags.jobs.has_value() && (*flags.jobs == 0 || *flags.jobs > kMostThreads)) {
    return absl::InvalidArgumentError(absl::StrCat("--jobs: ", *flags.jobs, " is not between 1 and ", kMostThreads));
  }
  if (absl::Status kept = NoInputIsWritten(flags.program, {{"--json-to", flags.json_to}}); !kept.ok()) return kept;
  absl::StatusOr<HollowMachine> card = ReadMachine(flags.machine);
  if (!card.ok()) return card.status();
  if (!card->has_limit) return absl::InvalidArgumentError(kNeedsCard);
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
  HollowSettings settings = flags.settings;
  settings.history = 0;  // of peaks alone
  settings.names.looks = "off";
  out.launch = {path, asked.vary.has_value() ? FirstProgram(flags.program, *asked.vary) : flags.program,
                HollowEnvironment(settings, *files, folder.path()),
                /*has_fixed_addresses=*/flags.settings.reproducible, /*prints_to_stderr=*/true};
  out.launch.environment["ASHLAR_FIT"] = "watch";
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

// Those that --only does not name are not made. InvalidArgument where it names one that is not there.
absl::Status KeepOnly(const std::vector<std::string>& only, std::vector<FitChange>& changes) {
  for (const std::string& name : only) {
    if (std::any_of(changes.begin(), changes.end(), [&](const FitChange& one) { return one.name == name; })) continue;
    std::vector<std::string> names;
    for (const FitChange& change : changes) names.push_back(change.name);
    return absl::InvalidArgumentError(
        absl::StrCat("--only: there is no change '", name, "': ", absl::StrJoin(names, ", ")));
  }
  for (FitChange& change : changes) {
    if (only.empty() || std::find(only.begin(), only.end(), change.name) != only.end()) continue;
    if (change.applies) change.why_not = "--only leaves it out";
    change.applies = false;
  }
  return absl::OkStatus();
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
  SignalRelay relay((*folder)->path());
  int code = 0;
  absl::StatusOr<FitBase> base = RunBase(flags, *asked, found.path, **folder, relay, code);
  if (!base.ok()) return Fail(kUnreadable, base.status());
  if (code != 0) {
    return Fail(code, absl::UnavailableError(absl::StrCat("the program as it is ended with exit code ", code,
                                                          ", in room for all that it asked for: fix that first")));
  }
  if (base->facts.steps == 0) return Fail(kUnreadable, absl::UnavailableError(kNeedsTorch));
  if (absl::Status status = KeepOnly(asked->only, base->facts.changes); !status.ok()) return Fail(kUsage, status);
  ProgressLine line;
  const std::function<void(const std::string&)> progress = line.Shower();
  const std::size_t at_once =
      flags.jobs.has_value() ? static_cast<std::size_t>(*flags.jobs) : RerunsAtOnce(base->host_bytes);
  FitRuns runs(*base, at_once, relay, progress);
  FitAnswer answer;
  answer.program = flags.program;
  answer.card = asked->card.card.empty() ? "a device" : asked->card.card;
  answer.total_bytes = asked->card.total.bytes;
  answer.steps = base->facts.steps;
  answer.stop_step = runs.stop();
  answer.changes = base->facts.changes;
  answer.allowed = asked->allowed;
  answer.base = runs.BaseRow();
  const VaryLimits limits = {.seconds = asked->budget, .most_seconds = MostSecondsOf(base->seconds)};
  if (asked->vary.has_value()) {
    answer.varied = RunValues(*asked->vary, flags.program, limits, runs);
  } else if (asked->wants_batch) {
    absl::StatusOr<answers::FitValues> varied = RunBatches(base->facts.batch, limits, runs);
    if (!varied.ok()) return Fail(kUnreadable, varied.status());
    answer.varied = *std::move(varied);
  } else if (answer.base.verdict != FitVerdict::kFits) {
    FitSearch search(runs, limits.most_seconds, asked->budget, answer);
    if (absl::Status status = search.RunRows(); !status.ok()) return Fail(kUnreadable, status);
    if (answer.base.verdict != FitVerdict::kFits) search.FindSet();
    search.CountOperations();
  }
  answer.runs = runs.runs() + 1;
  answer.kept_away.assign(runs.kept_away().begin(), runs.kept_away().end());
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
  app.Add("--allow", flags->allow, "kinds of altered results that a set may have: precision,optimizer,batch-norm")
      .Takes("KINDS")
      .NotEmpty();
  app.Add("--only", flags->only, "changes to try, and no others: half-batch,checkpointing").Takes("CHANGES").NotEmpty();
  app.Add("--goal", flags->goal, "a set of changes that fits, or the largest batch that does")
      .OneOf({"set", "largest-batch"});
  app.Add("--vary", flags->vary,
          "an argument of the program to try: --vary=--batch-size:1..256 finds the largest that fits, :1,2,4 runs each")
      .Takes("ARGUMENT:VALUES")
      .NotEmpty();
  app.Add("--budget", flags->budget, "time for the runs after the first one, such as 90s, 3min (default) or 1h")
      .Takes("TIME")
      .NotEmpty();
  app.Add("--jobs", flags->jobs, "runs side by side (default: as many as processors and the host's memory allow)");
  app.Add("--format", flags->format, "text, json, or markdown to paste into an issue")
      .OneOf({"text", "json", "markdown"});
  app.Add("--json", flags->json, "print JSON (ashlar schema fit)");
  AddJsonFile(app, flags->json_to);
  app.OnRun([flags] { return RunFit(*flags); });
}

}  // namespace ashlar::cli
