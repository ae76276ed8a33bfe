#include "launcher/card_runs.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "allocator/base/units.h"
#include "console/command.h"
#include "launcher/apart.h"
#include "launcher/explain.h"
#include "launcher/rerun.h"

namespace ashlar::cli {
namespace {

constexpr double kUnaskedSeconds = 60;              // of a program that is run again without being asked for
constexpr gpus::Capability kFirstAlike{8, 0};       // below it, kernels of bf16 and of fused attention are missing
constexpr double kNearFrom = 0.40, kNearTo = 1.05;  // of a card's memory

bool IsNear(const gpus::Gpu& gpu, std::uint64_t peak_bytes) {
  const double share = static_cast<double>(peak_bytes) / static_cast<double>(gpu.total_bytes.value);
  return gpu.capability() < kFirstAlike || (share >= kNearFrom && share <= kNearTo);
}

// A card for each compute capability that is wanted, but for the first run's: the least whose context is known.
std::map<gpus::Capability, const gpus::Gpu*> ClassesOf(const CardChoice& choice, const RunReport& report) {
  std::map<gpus::Capability, const gpus::Gpu*> out;
  for (const gpus::Gpu* gpu : choice.which == CardChoice::Which::kNamed ? choice.named : AllCards()) {
    if (gpu->capability() == report.machine.ran_as.capability) continue;
    if (choice.which != CardChoice::Which::kNear || IsNear(*gpu, PeakBytes(report)))
      if (const gpus::Gpu*& of = out[gpu->capability()];
          of == nullptr || (!of->lazy_context_bytes && gpu->lazy_context_bytes))
        of = gpu;
  }
  return out;
}

std::uint64_t Launches(const RunResults& results) {
  std::uint64_t out = 0;
  for (const ProcessRun& run : results.runs) out += run.books.has_value() ? run.books->launches : 0;
  return out;
}

// A program that finds its own results may do less: then it is not the first run over again.
std::string WhyNotAlike(const RunResults& first, const RunResults& again) {
  for (const ProcessRun& run : again.runs) {
    if (run.OutOfMemory() > 0) return "a request found no memory";
  }
  const std::uint64_t before = Launches(first), now = Launches(again);
  if (2 * now >= before) return "";
  return absl::StrCat("it did less than the first time, ", FormatCount(now), " kernels of ", FormatCount(before),
                      ", as one that finds what it wrote does");
}

absl::StatusOr<CardTable> TableOf(const gpus::Gpu& gpu, const RunReport& report, const RerunEnd& end,
                                  const answers::Progress& progress) {
  const std::string why_not = !end.why_not.empty() ? end.why_not : WhyNotAlike(report.results, end.results);
  if (!why_not.empty()) return absl::UnavailableError(why_not);
  const ProcessRun* run = ToExplain(end.results);
  if (run == nullptr) return absl::UnavailableError("it has no history");
  Cards cards;
  for (const gpus::Gpu* card : AllCards()) {
    if (card->capability() == gpu.capability()) cards.push_back(card);
  }
  return CardsOfRun(end.results, *run, cards, {std::string(gpu.name), gpu.capability()}, progress);
}

// Rows of a run as such a card, in the place of those of another's.
void Replace(const CardTable& by, CardTable& table) {
  table.replays += by.replays;
  for (const CardRow& row : by.rows) {
    const auto place =
        std::find_if(table.rows.begin(), table.rows.end(), [&](const CardRow& of) { return of.gpu == row.gpu; });
    if (place != table.rows.end()) *place = row;
  }
}

void RunAsOthers(const CardChoice& choice, const FirstRun& first, SignalRelay& relay, const answers::Progress& progress,
                 RunReport& report) {
  std::vector<const gpus::Gpu*> cards;
  std::vector<Rerun> reruns;
  for (const auto& [capability, gpu] : ClassesOf(choice, report)) {
    const absl::StatusOr<HollowMachine> machine = ReadMachineAs(first.machine, *gpu);
    if (!machine.ok()) {
      report.card_runs.runs.push_back({gpu, std::string(machine.status().message())});
      continue;
    }
    cards.push_back(gpu);
    reruns.push_back({absl::StrCat("as ", gpu->name), first.launch, machine->text});
    reruns.back().launch.environment.erase("ASHLAR_HOLLOW_CALLS");  // the file is the first run's
  }
  const RerunLimits limits = {.at_once = RerunsAtOnce(first.host_bytes * report.results.runs.size()),
                              .most_seconds = MostSecondsOf(first.seconds)};
  const std::vector<RerunEnd> ends = RunAgain(reruns, limits, relay, progress);
  std::set<std::string> kept_away, not_sent;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const absl::StatusOr<CardTable> table = TableOf(*cards[i], report, ends[i], progress);
    if (table.ok()) Replace(*table, *report.cards);
    report.card_runs.runs.push_back({cards[i], std::string(table.status().message())});
    kept_away.insert(ends[i].kept.begin(), ends[i].kept.end());
    not_sent.insert(ends[i].not_sent.begin(), ends[i].not_sent.end());
  }
  report.card_runs.kept_away.assign(kept_away.begin(), kept_away.end());
  report.card_runs.not_sent.assign(not_sent.begin(), not_sent.end());
}

}  // namespace

void AddCardFlags(Command& app, CardFlags& flags) {
  Flag cards = app.Add("--cards", flags.cards,
                       "without a card: as which the program is run again: near (default), all or NAME,...")
                   .Takes("CARDS")
                   .NotEmpty();
  app.Add("--once", flags.once, "the program is not run again, as other cards or under another setting")
      .Excludes(cards);
}

absl::StatusOr<CardChoice> ReadCardChoice(const CardFlags& flags) {
  CardChoice out;
  out.is_asked = !flags.cards.empty();
  if (flags.once) out.which = CardChoice::Which::kNone;
  if (flags.once || flags.cards.empty() || flags.cards == "near") return out;
  out.which = flags.cards == "all" ? CardChoice::Which::kAll : CardChoice::Which::kNamed;
  if (flags.cards == "all") return out;
  for (const absl::string_view name : absl::StrSplit(flags.cards, ',')) {
    const absl::StatusOr<gpus::Gpu> found = gpus::GpuNamed(name);
    if (!found.ok()) return OfFlag("--cards", found.status());
    for (const gpus::Gpu* gpu : AllCards()) {
      if (gpu->name == found->name) out.named.push_back(gpu);
    }
  }
  return out;
}

std::string WhyNotRunAgain(const CardChoice& choice, const FirstRun& first) {
  if (choice.which == CardChoice::Which::kNone) return "--once was given";
  if (!choice.is_asked && first.seconds > kUnaskedSeconds) {
    return absl::StrFormat("it took %.0f s, and a program of over %.0f s is run again only where it is asked for",
                           first.seconds, kUnaskedSeconds);
  }
  if (!Walls::AreKnown()) return "this Linux has no Landlock, which keeps it from writing over what it wrote";
  return "";
}

void AddCards(const CardChoice& choice, const FirstRun& first, SignalRelay& relay, const answers::Progress& progress,
              RunReport& report) {
  absl::StatusOr<CardTable> cards =
      CardsOfRun(report.results, *report.explained, AllCards(), report.machine.ran_as, progress);
  if (!cards.ok()) {
    report.notes.emplace_back(cards.status().message());
    return;
  }
  report.cards = *std::move(cards);
  report.card_runs.why_none =
      EndedEarly(report).has_value() ? "the program ended before its end" : WhyNotRunAgain(choice, first);
  if (report.card_runs.why_none.empty()) RunAsOthers(choice, first, relay, progress, report);
}

}  // namespace ashlar::cli
