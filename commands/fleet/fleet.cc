#include "commands/fleet/fleet.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "commands/shared/fleet_names.h"

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
    whatif::WithholdUnproven(absl::StrCat("in ", RanksOf(out.members, inexact)), out.tried->result.advice);
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

// The part of fleet.h that lays the ranks' curves on one axis.

namespace {

constexpr std::uint64_t kWholeShare = 1000;

const RankCurve* CurveOf(const FleetMember& member) {
  return member.summary.has_value() && member.summary->curve.has_value() ? &*member.summary->curve : nullptr;
}

std::vector<const RankCurve*> CurvesOf(const std::vector<FleetMember>& members) {
  std::vector<const RankCurve*> out;
  for (const FleetMember& member : members) {
    if (const RankCurve* curve = CurveOf(member)) out.push_back(curve);
  }
  return out;
}

// The device's memory where all that know it have the same; else the greatest that was reserved.
std::uint64_t FullBytes(const std::vector<FleetMember>& members) {
  std::uint64_t reserved = 1;
  std::optional<std::uint64_t> total;
  bool is_alike = true;
  for (const FleetMember& member : members) {
    if (!member.summary.has_value()) continue;
    reserved = std::max(reserved, member.summary->peak_reserved_bytes.value_or(0));
    if (!member.summary->total_bytes.has_value()) continue;
    if (total.has_value() && *total != *member.summary->total_bytes) is_alike = false;
    total = member.summary->total_bytes;
  }
  return is_alike && total.value_or(0) >= reserved ? *total : reserved;
}

std::uint16_t ShareOf(std::uint64_t bytes, std::uint64_t full) {
  const std::uint64_t part = bytes / full * kWholeShare + (bytes % full * kWholeShare + full - 1) / full;
  return static_cast<std::uint16_t>(std::min(part, kWholeShare));
}

// Where a bin's edge lies: begin + i / kFleetBins of the length.
std::int64_t Edge(std::int64_t begin, std::int64_t end, std::size_t i) {
  return begin + static_cast<std::int64_t>(static_cast<double>(end - begin) * static_cast<double>(i) /
                                           static_cast<double>(kFleetBins));
}

// Of the axis' bin [begin, end): the greatest value of the curve's bins that it meets; nullopt: outside the curve.
std::optional<std::uint64_t> MostWithin(const RankCurve& curve, const std::vector<std::uint64_t>& values,
                                        std::int64_t shift, std::int64_t begin, std::int64_t end) {
  std::optional<std::uint64_t> out;
  if (end <= curve.begin + shift || begin >= curve.end + shift) return out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t from = Edge(curve.begin, curve.end, i) + shift;
    const std::int64_t to = std::max(Edge(curve.begin, curve.end, i + 1) + shift, from + 1);
    if (from < std::max(end, begin + 1) && begin < to) out = std::max(out.value_or(0), values[i]);
  }
  return out;
}

class HeatMaker {
 public:
  HeatMaker(const std::vector<FleetMember>& members, FleetClock clock) : members_(members), clock_(clock) {
    out_.full_bytes = FullBytes(members);
    if (clock == FleetClock::kEvents) return;
    out_.begin_us = clock == FleetClock::kOwn ? 0 : std::numeric_limits<std::int64_t>::max();
    for (const RankCurve* curve : CurvesOf(members)) {
      if (clock == FleetClock::kCommon) out_.begin_us = std::min(out_.begin_us, curve->begin);
    }
    out_.end_us = out_.begin_us + 1;
    for (const RankCurve* curve : CurvesOf(members)) {
      out_.end_us = std::max(out_.end_us, curve->end + ShiftOf(*curve));
    }
  }

  FleetHeat Make() {
    for (Member member = 0; member < members_.size(); ++member) {
      const RankCurve* curve = CurveOf(members_[member]);
      if (curve == nullptr) continue;
      out_.rows.push_back({member, Row(*curve, curve->allocated_bytes), Row(*curve, curve->reserved_bytes)});
    }
    return std::move(out_);
  }

 private:
  std::int64_t ShiftOf(const RankCurve& curve) const { return clock_ == FleetClock::kOwn ? -curve.begin : 0; }

  std::vector<std::optional<std::uint16_t>> Row(const RankCurve& curve,
                                                const std::vector<std::uint64_t>& values) const {
    std::vector<std::optional<std::uint16_t>> out;
    for (std::size_t i = 0; i < kFleetBins && i < values.size(); ++i) {
      std::optional<std::uint64_t> most = values[i];
      if (clock_ != FleetClock::kEvents) {
        most = MostWithin(curve, values, ShiftOf(curve), Edge(out_.begin_us, out_.end_us, i),
                          Edge(out_.begin_us, out_.end_us, i + 1));
      }
      out.push_back(most.has_value() ? std::optional(ShareOf(*most, out_.full_bytes)) : std::nullopt);
    }
    return out;
  }

  const std::vector<FleetMember>& members_;
  const FleetClock clock_;
  FleetHeat out_;
};

}  // namespace

FleetClock ClockOf(const std::vector<FleetMember>& members) {
  const std::vector<const RankCurve*> curves = CurvesOf(members);
  std::vector<std::uint64_t> lengths;
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  for (const RankCurve* curve : curves) {
    if (!curve->is_time) return FleetClock::kEvents;
    lengths.push_back(static_cast<std::uint64_t>(curve->end - curve->begin));
    first = std::min(first, curve->begin);
    last = std::max(last, curve->begin);
  }
  if (curves.empty()) return FleetClock::kEvents;
  // Ranks of one job begin together: within the length of a usual window.
  const std::uint64_t apart = static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first);
  return apart <= MedianOf(std::move(lengths)) ? FleetClock::kCommon : FleetClock::kOwn;
}

FleetHeat MakeHeat(const std::vector<FleetMember>& members, FleetClock clock) {
  return HeatMaker(members, clock).Make();
}

// The part of fleet.h that says the answer in plain sentences, the most pressing first.

namespace {

constexpr std::size_t kMostOutlierRanks = 3;  // in the sentences; the section has more

std::string InSeconds(std::int64_t us) { return absl::StrFormat("%.3f s", static_cast<double>(us) / 1e6); }

// The first to fail, and whom it may have taken along.
std::string FailureSentence(const FleetAnswer& answer) {
  Members read;
  for (Member member = 0; member < answer.members.size(); ++member) {
    if (answer.members[member].summary.has_value()) read.push_back(member);
  }
  if (answer.failures.empty()) return absl::StrCat("no request failed in ", CountedRanks(answer.members, read));
  Members failed;
  for (const FleetFailure& failure : answer.failures) failed.push_back(failure.member);
  const auto name = [&answer](const FleetFailure& failure) { return answer.members[failure.member].name; };
  std::string out = absl::StrCat(FormatCount(CountRanks(answer.members, failed)), " of ",
                                 CountedRanks(answer.members, read), " ran out of memory: ");
  if (answer.failures.size() == 1) return absl::StrCat(out, name(answer.failures.front()));
  if (!answer.failures_in_order) return absl::StrCat(out, RanksOf(answer.members, failed));
  absl::StrAppend(&out, name(answer.failures.front()), " first, after ", InSeconds(*answer.failures.front().after_us),
                  "; then ", name(answer.failures[1]), ", after ", InSeconds(*answer.failures[1].after_us));
  if (answer.failures.size() > 2) absl::StrAppend(&out, " and ", answer.failures.size() - 2, " more");
  return out;
}

// What the failed have in common; without a failure, what the ranks suffer from.
void AddCauseSentence(const FleetAnswer& answer, std::vector<std::string>& out) {
  std::vector<const FleetCause*> of_failed;
  std::set<Member> explained;
  for (const FleetCause& cause : answer.causes) {
    if (cause.failed.empty()) continue;
    of_failed.push_back(&cause);
    explained.insert(cause.failed.begin(), cause.failed.end());
  }
  if (answer.failures.empty() || of_failed.empty()) return;
  std::string sentence;
  Members others;
  for (const FleetFailure& failure : answer.failures) {
    if (explained.count(failure.member) == 0) others.push_back(failure.member);
  }
  if (of_failed.size() == 1 && others.empty()) {
    sentence = answer.failures.size() == 1 ? "its cause: " : "one cause in all that failed: ";
    absl::StrAppend(&sentence, of_failed.front()->sentence);
  } else {
    sentence = absl::StrCat(of_failed.size(), of_failed.size() == 1 ? " cause" : " causes", " in those that failed: ");
    for (const FleetCause* cause : of_failed) {
      absl::StrAppend(&sentence, cause == of_failed.front() ? "" : "; ", cause->sentence, " (",
                      RanksOf(answer.members, cause->failed, 3), ")");
    }
    if (!others.empty()) absl::StrAppend(&sentence, "; in ", RanksOf(answer.members, others, 3), " none was found");
  }
  out.push_back(std::move(sentence));
}

// "rank 37 holds 2.90 GiB, its stage 938 MiB": of each rank the figure that lies farthest off.
void AddOutlierSentences(const FleetAnswer& answer, std::vector<std::string>& out) {
  std::set<Member> named;
  for (const FleetOutlier& outlier : answer.outliers) named.insert(outlier.member);
  const Members all(named.begin(), named.end());
  if (named.empty()) return;
  std::set<Member> told;
  std::string sentence =
      absl::StrCat(CountedRanks(answer.members, all), CountRanks(answer.members, all) == 1 ? " differs" : " differ",
                   " from the others", answer.stages.empty() ? "" : " of the same stage", ": ");
  for (const FleetOutlier& outlier : answer.outliers) {
    if (told.size() == kMostOutlierRanks) break;
    if (!told.insert(outlier.member).second) continue;
    std::string figure = outlier.figure;
    std::replace(figure.begin(), figure.end(), '_', ' ');
    absl::StrAppend(&sentence, told.size() == 1 ? "" : "; ", answer.members[outlier.member].name, " ", figure, " ",
                    FormatBytes(outlier.bytes), ", the others ", FormatBytes(outlier.median_bytes));
  }
  if (named.size() > told.size()) absl::StrAppend(&sentence, "; and ", named.size() - told.size(), " more");
  out.push_back(std::move(sentence));
}

std::string GrowthPerStep(const FleetGrowth& growth) {
  if (growth.least_bytes_per_step == growth.most_bytes_per_step) return FormatBytes(growth.most_bytes_per_step);
  return absl::StrCat(FormatBytes(growth.least_bytes_per_step), " to ", FormatBytes(growth.most_bytes_per_step));
}

void AddGrowthSentence(const FleetAnswer& answer, std::vector<std::string>& out) {
  if (answer.growths.empty()) return;
  const FleetGrowth& growth = answer.growths.front();
  std::string sentence =
      absl::StrCat(RanksOf(answer.members, growth.members), growth.members.size() == 1 ? " grows" : " grow", " by ",
                   GrowthPerStep(growth), " each step");
  if (!growth.line.empty()) absl::StrAppend(&sentence, ", from ", growth.line);
  if (answer.growths.size() > 1) {
    Members others;
    for (auto other = answer.growths.begin() + 1; other != answer.growths.end(); ++other) {
      others.insert(others.end(), other->members.begin(), other->members.end());
    }
    absl::StrAppend(&sentence, "; ", CountedRanks(answer.members, others), " more by other lines");
  }
  out.push_back(std::move(sentence));
}

void AddSettingsSentence(const FleetAnswer& answer, std::vector<std::string>& out) {
  if (answer.settings.size() < 2) return;
  const FleetSettings& usual = answer.settings.front();
  std::string sentence;
  for (std::size_t i = 1; i < answer.settings.size() && i < 4; ++i) {
    const FleetSettings& other = answer.settings[i];
    std::string what;
    const auto add = [&what](const std::string& text) { absl::StrAppend(&what, what.empty() ? "" : ", ", text); };
    if (other.conf != usual.conf) add(other.conf.empty() ? "the default settings" : other.conf);
    if (other.compat != usual.compat) add(absl::StrCat("the rules of ", other.compat));
    if (other.total_bytes != usual.total_bytes) {
      add(other.total_bytes.has_value() ? absl::StrCat("a device of ", FormatBytes(*other.total_bytes))
                                        : "a device of unknown size");
    }
    absl::StrAppend(&sentence, i == 1 ? "" : "; ", RanksOf(answer.members, other.members), " ran under ", what);
  }
  absl::StrAppend(&sentence, "; the other ", CountedRanks(answer.members, usual.members), " under ",
                  usual.conf.empty() ? "the default settings" : usual.conf);
  if (answer.settings.size() > 4) absl::StrAppend(&sentence, "; there are more, see --json");
  out.push_back(std::move(sentence));
}

void AddBrokenSentence(const FleetAnswer& answer, std::vector<std::string>& out) {
  if (answer.broken.empty()) return;
  const FleetMember& first = answer.members[answer.broken.front()];
  std::string sentence = absl::StrCat(FormatCount(answer.broken.size()), answer.broken.size() == 1 ? " file" : " files",
                                      " could not be used: ", first.path, ": ", first.error);
  if (answer.broken.size() > 1) absl::StrAppend(&sentence, "; and ", answer.broken.size() - 1, " more");
  out.push_back(std::move(sentence));
}

}  // namespace

std::vector<std::string> SentencesOf(const FleetAnswer& answer) {
  std::vector<std::string> out;
  if (answer.broken.size() < answer.members.size()) {
    out.push_back(FailureSentence(answer));
    AddCauseSentence(answer, out);
    AddOutlierSentences(answer, out);
    AddGrowthSentence(answer, out);
    AddSettingsSentence(answer, out);
  }
  AddBrokenSentence(answer, out);
  if (answer.tried.has_value()) out.push_back(answer.tried->result.advice.sentence);
  return out;
}

}  // namespace ashlar::answers
