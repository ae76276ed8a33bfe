#include "launcher/rank_runs.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "launcher/rank_roles.h"

namespace ashlar::cli {
namespace {

// A role that was run, with all that its run left.
struct RanRole {
  RoleToRun role;
  RunReport report;
  std::string why_not;  // it did not come to its end
};

// With libraries, where they decide whether it fits.
std::uint64_t BytesThatDecide(const RunReport& report) {
  const std::optional<DeviceAccount> account = AccountOf(report);
  return PeakBytes(report) + (FitsUnless(report).has_value() ? account->Beside().most_bytes : 0);
}

// What decides first: 0 found no memory, 1 did not come to its end, 2 fits unless libraries take too much, 3 fits.
int Urgency(const RunReport& report) {
  const FitState fit = FitOf(report);
  if (fit != FitState::kFits) return fit == FitState::kDoesNot ? 0 : 1;
  return FitsUnless(report).has_value() ? 2 : 3;
}

bool DecidesBefore(const RanRole& a, const RanRole& b) {
  if (Urgency(a.report) != Urgency(b.report)) return Urgency(a.report) < Urgency(b.report);
  return BytesThatDecide(a.report) > BytesThatDecide(b.report);
}

std::string DifferenceText(std::uint64_t bytes, std::uint64_t others) {
  return bytes > others ? absl::StrCat(FormatBytes(bytes - others), " more")
                        : absl::StrCat(FormatBytes(others - bytes), " less");
}

std::uint64_t CommunicatorsOf(const RunReport& report) {
  std::uint64_t out = 0;
  for (const ProcessRun& run : report.results.runs) {
    if (run.books.has_value()) out += run.books->library_calls.communicators.size();
  }
  return out;
}

std::uint64_t AllocatedBytes(const RunReport& report) {
  std::uint64_t out = 0;
  for (const ProcessRun& run : report.results.runs) {
    if (!run.torch.has_value()) continue;
    for (const TorchDevice& device : run.torch->devices) out = std::max(out, device.peak_allocated_bytes);
  }
  return out;
}

RankRole RoleOf(const RanRole& ran) {
  const std::optional<DeviceAccount> account = AccountOf(ran.report);
  return {.rank = ran.role.rank,
          .what = ran.role.what,
          .fit = FitOf(ran.report),
          .peak_bytes = PeakBytes(ran.report),
          .allocated_bytes = AllocatedBytes(ran.report),
          .beside = account.has_value() ? account->Beside() : libraries::BytesBetween(),
          .communicators = CommunicatorsOf(ran.report),
          .why_not = ran.why_not};
}

class RoleRuns {
 public:
  RoleRuns(const RankChoice& choice, std::string folder, const FirstRun& first, SignalRelay& relay,
           const std::function<void(const std::string&)>& progress, RunReport& report)
      : choice_(choice),
        folder_(std::move(folder)),
        first_(first),
        relay_(relay),
        progress_(progress),
        search_(choice.ranks) {
    ran_.push_back({{choice.first(), "first"}, report, ""});
  }

  // In their order. Side by side only where none hears from another.
  void RunGiven(const RankEvidence& evidence) {
    std::vector<RoleToRun> roles;
    for (const int rank : choice_.given) {
      if (rank != choice_.first()) roles.push_back({rank, "given"});
    }
    if (evidence.peers.empty()) return Run(roles);
    for (const RoleToRun& role : roles) Run({role});
  }

  void RunByEvidence(const RankEvidence& evidence) {
    search_.Add(evidence);
    for (std::vector<RoleToRun> next = search_.Next(); !next.empty(); next = search_.Next()) {
      const std::size_t before = ends_.size();
      Run(next);
      for (std::size_t i = before; i < ends_.size(); ++i) {
        if (ends_[i].folder == nullptr) continue;
        if (const auto told = ReadRankEvidence(ends_[i].folder->path()); told.has_value()) search_.Add(*told);
      }
    }
  }

  RankRuns Summary() const {
    RankRuns out{.ranks = choice_.ranks, .per_node = choice_.per_node};
    for (const RanRole& ran : ran_) out.roles.push_back(RoleOf(ran));
    if (choice_.given.empty()) {
      NameStages(out);
      Compare(out);
      return out;
    }
    for (RankRole& role : out.roles) role.stands_for = {role.rank};
    const std::size_t rest = static_cast<std::size_t>(choice_.ranks) - out.roles.size();
    if (rest > 0) out.assumed.push_back(absl::StrCat("nothing is said of the ", rest, " ranks that were not run"));
    return out;
  }

  // The place of the role that decides, and the role.
  std::size_t WorstPlace() const {
    return static_cast<std::size_t>(std::min_element(ran_.begin(), ran_.end(), DecidesBefore) - ran_.begin());
  }
  const RanRole& At(std::size_t place) const { return ran_[place]; }
  RoleEnds TakeEnds() { return std::move(ends_); }

 private:
  void Run(const std::vector<RoleToRun>& roles) {
    if (roles.empty()) return;
    std::vector<Rerun> reruns;
    for (const RoleToRun& role : roles) {
      Rerun rerun{absl::StrCat("rank ", role.rank), first_.launch, ran_.front().report.machine.text};
      for (auto& [name, value] : RankEnvironment(choice_, role.rank, folder_)) rerun.launch.environment[name] = value;
      rerun.launch.environment.erase("ASHLAR_HOLLOW_CALLS");  // the file is the first run's
      reruns.push_back(std::move(rerun));
    }
    const RerunLimits limits{.at_once = RerunsAtOnce(first_.host_bytes), .most_seconds = MostSecondsOf(first_.seconds)};
    std::vector<RerunEnd> ends = RunAgain(reruns, limits, relay_, progress_);
    for (std::size_t i = 0; i < ends.size(); ++i) {
      RunReport report = ran_.front().report;
      report.results = ends[i].results;
      report.exit_code = ends[i].exit_code;
      ran_.push_back({roles[i], std::move(report), ends[i].why_not});
      ends_.push_back(std::move(ends[i]));
    }
  }

  void NameStages(RankRuns& out) const {
    const std::vector<int> stages = search_.Stages();
    if (stages.size() < 2) return;
    for (RankRole& role : out.roles) {
      const auto place = std::find(stages.begin(), stages.end(), role.rank);
      if (place == stages.end()) continue;
      role.what = absl::StrCat("stage ", place - stages.begin() + 1, " of ", stages.size());
    }
  }

  static bool IsStage(int rank, const std::vector<int>& stages) {
    return std::find(stages.begin(), stages.end(), rank) != stages.end();
  }

  // Those that are the last along a group, against the stage that they are of.
  void Compare(RankRuns& out) const {
    const std::vector<int> stages = search_.Stages();
    std::set<int> themselves;
    for (RankRole& role : out.roles) {
      if (IsStage(role.rank, stages) || IsLikeItsStage(role, out)) continue;
      themselves.insert(role.rank);
      role.stands_for = {role.rank};
    }
    for (RankRole& role : out.roles) {
      if (IsStage(role.rank, stages)) StandIn(role, themselves, out);
    }
    if (!search_.has_told_stages()) {
      out.assumed.push_back("no group holds the stages alone: a rank is taken to be of the last stage at or before it");
    }
  }

  // Says what was compared. One that did not come to its end is like none.
  bool IsLikeItsStage(const RankRole& role, RankRuns& out) const {
    const int rank = search_.StageOf(role.rank);
    const auto stage =
        std::find_if(out.roles.begin(), out.roles.end(), [rank](const RankRole& of) { return of.rank == rank; });
    if (!role.why_not.empty() || stage == out.roles.end()) return false;
    const bool is_like = role.peak_bytes == stage->peak_bytes;
    const std::string which = absl::StrCat("rank ", role.rank, ", ", role.what);
    out.compared.push_back(is_like ? absl::StrCat(which, ", has the peak of rank ", rank, ": they count as one role")
                                   : absl::StrCat(which, ", has another peak than rank ", rank, ", ",
                                                  FormatBytes(role.peak_bytes), " and ", FormatBytes(stage->peak_bytes),
                                                  " (", DifferenceText(role.peak_bytes, stage->peak_bytes),
                                                  "): the ranks between were not run; --roles all runs each"));
    return is_like;
  }

  void StandIn(RankRole& role, const std::set<int>& themselves, RankRuns& out) const {
    role.stands_for = search_.StandsFor(role.rank, themselves);
    std::vector<int> others = role.stands_for;
    std::erase(others, role.rank);
    if (others.empty()) return;
    out.assumed.push_back(absl::StrCat("ranks ", RangesText(others), " take what rank ", role.rank, " takes"));
  }

  const RankChoice& choice_;
  const std::string folder_;
  const FirstRun& first_;
  SignalRelay& relay_;
  const std::function<void(const std::string&)>& progress_;
  RoleSearch search_;
  std::vector<RanRole> ran_;  // the first run first
  RoleEnds ends_;
};

// Why no other role is run; empty: they are.
std::string WhyNoRoles(const RankChoice& choice, const std::optional<RankEvidence>& evidence, const RunReport& report) {
  if (!evidence.has_value()) {
    return absl::StrCat(EndedEarly(report).has_value() ? "the program ended before it made a process group"
                                                       : "the program made no process group",
                        ": that there are ", choice.ranks, " ranks changed nothing for it");
  }
  if (FitOf(report) == FitState::kUnknown) return "the program ended before its end as the first of them";
  if (evidence->world != choice.ranks) {
    return absl::StrCat("the program made a world of ", evidence->world, " ranks, and not the ", choice.ranks,
                        " of --ranks and WORLD_SIZE");
  }
  return WhyNotRunAgain({.which = CardChoice::Which::kAll, .named = {}, .is_asked = true}, {});
}

}  // namespace

std::string RanksFolder(const std::string& run_folder) { return run_folder + "/ranks"; }

RoleEnds RunRoles(const RankChoice& choice, const std::string& run_folder, FirstRun& first, SignalRelay& relay,
                  const std::function<void(const std::string&)>& progress, RunReport& report) {
  const std::optional<RankEvidence> evidence = ReadRankEvidence(run_folder);
  if (std::string why_none = WhyNoRoles(choice, evidence, report); !why_none.empty()) {
    report.ranks = RankRuns{.ranks = choice.ranks, .per_node = choice.per_node, .why_none = std::move(why_none)};
    return {};
  }
  RoleRuns runs(choice, RanksFolder(run_folder), first, relay, progress, report);
  if (choice.given.empty()) {
    runs.RunByEvidence(*evidence);
  } else {
    runs.RunGiven(*evidence);
  }
  RankRuns summary = runs.Summary();
  summary.worst = runs.WorstPlace();
  const RanRole& worst = runs.At(summary.worst);
  for (auto& [name, value] : RankEnvironment(choice, worst.role.rank, RanksFolder(run_folder))) {
    first.launch.environment[name] = value;
  }
  report.results = worst.report.results;
  report.exit_code = worst.report.exit_code;
  report.ranks = std::move(summary);
  return runs.TakeEnds();
}

}  // namespace ashlar::cli
