#include "analyzer/answers/fleet.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/answers/fleet_names.h"

namespace ashlar::answers {
namespace {

void NameMembers(std::vector<FleetMember>& members) {
  std::map<std::uint64_t, std::size_t> files;
  for (const FleetMember& member : members) ++files[member.rank];
  for (FleetMember& member : members) {
    member.name = absl::StrCat("rank ", member.rank);
    if (files[member.rank] > 1) absl::StrAppend(&member.name, " (", member.path, ")");
  }
}

// By the common clock since the first rank began; by their own since each began.
std::optional<std::int64_t> AfterBegin(const RankSummary& summary, FleetClock clock, std::int64_t fleet_begin) {
  if (!summary.failure->time_us.has_value() || !summary.curve.has_value()) return std::nullopt;
  if (clock == FleetClock::kEvents) return std::nullopt;
  return *summary.failure->time_us - (clock == FleetClock::kCommon ? fleet_begin : summary.curve->begin);
}

void SetFailures(FleetAnswer& out) {
  for (Member member = 0; member < out.members.size(); ++member) {
    const auto& summary = out.members[member].summary;
    if (!summary.has_value() || !summary->failure.has_value()) continue;
    out.failures.push_back({member, AfterBegin(*summary, out.clock, out.heat.begin_us)});
  }
  // Clocks that differ, and times since beginnings that lie apart, tell no order.
  out.failures_in_order = out.clock == FleetClock::kCommon &&
                          std::all_of(out.failures.begin(), out.failures.end(),
                                      [](const FleetFailure& failure) { return failure.after_us.has_value(); });
  if (!out.failures_in_order) return;
  std::stable_sort(out.failures.begin(), out.failures.end(),
                   [](const FleetFailure& a, const FleetFailure& b) { return *a.after_us < *b.after_us; });
}

void AddFleetNotes(FleetAnswer& out) {
  out.notes.push_back(out.ranks_assumed);
  switch (out.clock) {
    case FleetClock::kCommon:
      out.notes.push_back("the files' times are of one clock: a time is counted from the first event of all ranks");
      break;
    case FleetClock::kOwn:
      out.notes.push_back(
          "the files' times lie apart, so the ranks did not run together, or on clocks that differ: a time is counted "
          "from each rank's own first event");
      break;
    case FleetClock::kEvents:
      out.notes.push_back(absl::StrCat("not every file has times",
                                       out.failures.size() > 1 ? ": who failed first is not in these files" : ""));
      break;
  }
  std::uint64_t matched = 0;
  std::uint64_t total = 0;
  Members inexact;
  Members misplaced;
  for (Member member = 0; member < out.members.size(); ++member) {
    const auto& summary = out.members[member].summary;
    if (!summary.has_value() || !summary->addresses_total.has_value()) continue;
    matched += *summary->addresses_matched;
    total += *summary->addresses_total;
    if (summary->addresses_matched != summary->addresses_total) misplaced.push_back(member);
    if (summary->is_exact == false) inexact.push_back(member);
  }
  if (out.tried.has_value() && !inexact.empty()) {
    remedies::WithholdUnproven(absl::StrCat("in ", RanksOf(out.members, inexact)), out.tried->result.advice);
  }
  if (total > 0) {
    std::string note = absl::StrCat("baseline fidelity: ", FormatCount(matched), " of ", FormatCount(total),
                                    " recorded addresses are the replay's");
    if (!misplaced.empty()) {
      absl::StrAppend(&note, "; not all in ", RanksOf(out.members, misplaced),
                      ": take what other settings do there with care");
    }
    out.notes.push_back(std::move(note));
  }
  std::map<std::string, Members> unread;
  for (Member member = 0; member < out.members.size(); ++member) {
    const auto& summary = out.members[member].summary;
    if (!summary.has_value()) continue;
    for (const std::string& setting : summary->unread) unread[setting].push_back(member);
  }
  for (const auto& [setting, members] : unread) {
    out.notes.push_back(absl::StrCat(RanksOf(out.members, members), ": ", setting));
  }
  if (out.tried.has_value() && out.tried->carried_differ) {
    out.notes.push_back("the recorded settings differ in keys that no row changes: each rank kept its own");
  }
  if (!out.tried.has_value()) return;
  for (const std::string& conf : out.tried->left_out) {
    out.notes.push_back(absl::StrCat(conf, " was not tried: not every rank's version of PyTorch knows it"));
  }
  Members without;
  for (Member member = 0; member < out.members.size(); ++member) {
    const auto& summary = out.members[member].summary;
    if (summary.has_value() && summary->rows.empty()) without.push_back(member);
  }
  if (!without.empty()) {
    out.notes.push_back(absl::StrCat(RanksOf(out.members, without), without.size() == 1 ? " records" : " record",
                                     " nothing to replay: the settings were tried without ",
                                     without.size() == 1 ? "it" : "them"));
  }
}

}  // namespace

std::string RanksOf(const std::vector<FleetMember>& members, const Members& of, std::size_t most) {
  std::vector<std::uint64_t> ranks;
  for (const Member member : of) ranks.push_back(members[member].rank);
  const std::string list = RankList(ranks, most);
  return absl::StrCat(std::set<std::uint64_t>(ranks.begin(), ranks.end()).size() == 1 ? "rank " : "ranks ", list);
}

std::size_t CountRanks(const std::vector<FleetMember>& members, const Members& of) {
  std::set<std::uint64_t> ranks;
  for (const Member member : of) ranks.insert(members[member].rank);
  return ranks.size();
}

std::string CountedRanks(const std::vector<FleetMember>& members, const Members& of) {
  const std::size_t count = CountRanks(members, of);
  return absl::StrCat(FormatCount(count), count == 1 ? " rank" : " ranks");
}

FleetAnswer AnswerFleet(std::vector<FleetMember> members, std::string ranks_assumed) {
  FleetAnswer out;
  out.members = std::move(members);
  out.ranks_assumed = std::move(ranks_assumed);
  std::stable_sort(out.members.begin(), out.members.end(), [](const FleetMember& a, const FleetMember& b) {
    return a.rank != b.rank ? a.rank < b.rank : NameComesBefore(a.path, b.path);
  });
  NameMembers(out.members);
  for (Member member = 0; member < out.members.size(); ++member) {
    if (!out.members[member].summary.has_value()) out.broken.push_back(member);
  }
  out.clock = ClockOf(out.members);
  out.heat = MakeHeat(out.members, out.clock);
  SetFailures(out);
  out.stages = FindStages(out.members);
  out.outliers = FindOutliers(out.members, out.stages);
  out.causes = GroupCauses(out.members);
  out.growths = GroupGrowths(out.members);
  out.settings = GroupSettings(out.members);
  out.tried = TryTogether(out.members);
  AddFleetNotes(out);
  out.sentences = SentencesOf(out);
  return out;
}

}  // namespace ashlar::answers
