// The parts of fleet.h that compare figures: stages and outliers.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "allocator/base/units.h"
#include "analyzer/whatif/settings_space.h"
#include "analyzer/whatif/sweep.h"
#include "commands/fleet/fleet.h"

namespace ashlar::answers {
namespace {

constexpr double kStageGap = 0.05;            // between neighbours in the order of their peaks, of the greater
constexpr std::size_t kLeastStageShare = 20;  // a stage has at least this part of the ranks
constexpr std::size_t kLeastStageRanks = 3;   // and these, that did not fail: two odd ones are no stage
constexpr std::size_t kLeastCompared = 4;     // ranks, for one of them to be an outlier
constexpr double kOutlierSpreads = 5;         // from the median
constexpr double kOutlierShare = 0.05;        // of the median peak of reserved memory, at least
constexpr double kSpreadOfNormal = 1.4826;    // median distance to standard deviation

using Figure = std::optional<std::uint64_t> RankSummary::*;

struct RankFigure {
  const char* name;
  Figure figure;
};
constexpr RankFigure kFigures[] = {{"peak_allocated", &RankSummary::peak_allocated_bytes},
                                   {"peak_reserved", &RankSummary::peak_reserved_bytes},
                                   {"stranded", &RankSummary::stranded_bytes}};

std::optional<std::uint64_t> ValueOf(const FleetMember& member, Figure figure) {
  return member.summary.has_value() ? (*member.summary).*figure : std::nullopt;
}

std::vector<std::uint64_t> ValuesOf(const std::vector<FleetMember>& members, const Members& of, Figure figure) {
  std::vector<std::uint64_t> out;
  for (const Member member : of) {
    if (const auto value = ValueOf(members[member], figure)) out.push_back(*value);
  }
  return out;
}

Members WithFigure(const std::vector<FleetMember>& members, Figure figure) {
  Members out;
  for (Member member = 0; member < members.size(); ++member) {
    if (ValueOf(members[member], figure).has_value()) out.push_back(member);
  }
  return out;
}

// Members whose peaks follow each other without a gap.
std::vector<Members> RunsOfPeaks(const std::vector<FleetMember>& members) {
  Members sorted = WithFigure(members, &RankSummary::peak_allocated_bytes);
  const auto peak = [&](Member member) { return *members[member].summary->peak_allocated_bytes; };
  std::stable_sort(sorted.begin(), sorted.end(), [&](Member a, Member b) { return peak(a) < peak(b); });
  std::vector<Members> out;
  for (const Member member : sorted) {
    const auto value = static_cast<double>(peak(member));
    const bool follows = !out.empty() && value - static_cast<double>(peak(out.back().back())) <= kStageGap * value;
    if (!follows) out.emplace_back();
    out.back().push_back(member);
  }
  return out;
}

FleetStage StageOf(const std::vector<FleetMember>& members, Members of) {
  std::sort(of.begin(), of.end());
  FleetStage out{std::move(of), 0, 0};
  out.median_allocated_bytes = MedianOf(ValuesOf(members, out.members, &RankSummary::peak_allocated_bytes));
  std::vector<std::uint64_t> reserved = ValuesOf(members, out.members, &RankSummary::peak_reserved_bytes);
  if (!reserved.empty()) out.median_reserved_bytes = MedianOf(std::move(reserved));
  return out;
}

// The stage of a member that is in none: that of the nearest ranks below and above where they agree, else the one whose
// figures are nearest.
std::size_t StageFor(Member member, const std::vector<FleetMember>& members, const std::vector<FleetStage>& stages) {
  std::map<Member, std::size_t> stage_of;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    for (const Member other : stages[stage].members) stage_of[other] = stage;
  }
  const auto above = stage_of.upper_bound(member);
  const bool has_below = above != stage_of.begin();
  if (above == stage_of.end() && has_below) return std::prev(above)->second;
  if (!has_below || std::prev(above)->second == above->second) return above->second;
  const std::uint64_t own = ValueOf(members[member], &RankSummary::peak_allocated_bytes).value_or(0);
  std::size_t best = 0;
  const auto distance = [&](std::size_t stage) {
    const std::uint64_t median = stages[stage].median_allocated_bytes;
    return median > own ? median - own : own - median;
  };
  for (std::size_t stage = 1; stage < stages.size(); ++stage) {
    if (distance(stage) < distance(best)) best = stage;
  }
  return best;
}

struct Compared {
  Members members;
  std::optional<std::size_t> stage;
};

std::vector<Compared> ComparedTogether(const std::vector<FleetMember>& members, const std::vector<FleetStage>& stages) {
  if (stages.empty()) return {{WithFigure(members, &RankSummary::peak_allocated_bytes), std::nullopt}};
  std::vector<Compared> out;
  std::vector<bool> has_stage(members.size());
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    out.push_back({stages[stage].members, stage});
    for (const Member member : stages[stage].members) has_stage[member] = true;
  }
  for (const Member member : WithFigure(members, &RankSummary::peak_allocated_bytes)) {
    if (!has_stage[member]) out[StageFor(member, members, stages)].members.push_back(member);
  }
  for (Compared& compared : out) std::sort(compared.members.begin(), compared.members.end());
  return out;
}

std::uint64_t FigureDistance(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : b - a; }

void AddOutliers(const std::vector<FleetMember>& members, const Compared& compared, const RankFigure& figure,
                 std::vector<FleetOutlier>& out) {
  std::vector<std::uint64_t> values = ValuesOf(members, compared.members, figure.figure);
  const std::vector<std::uint64_t> reserved = ValuesOf(members, compared.members, &RankSummary::peak_reserved_bytes);
  if (values.size() < kLeastCompared || reserved.empty()) return;
  const std::uint64_t median = MedianOf(values);
  const std::uint64_t least = static_cast<std::uint64_t>(kOutlierShare * static_cast<double>(MedianOf(reserved)));
  for (std::uint64_t& value : values) value = FigureDistance(value, median);
  const auto spread = static_cast<std::uint64_t>(kSpreadOfNormal * static_cast<double>(MedianOf(std::move(values))));
  for (const Member member : compared.members) {
    const std::optional<std::uint64_t> value = ValueOf(members[member], figure.figure);
    if (!value.has_value() || FigureDistance(*value, median) <= least) continue;
    if (static_cast<double>(FigureDistance(*value, median)) <= kOutlierSpreads * static_cast<double>(spread)) continue;
    out.push_back({member, figure.name, *value, median, spread, compared.stage});
  }
}

}  // namespace

std::uint64_t MedianOf(std::vector<std::uint64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<FleetStage> FindStages(const std::vector<FleetMember>& members) {
  const auto has_failed = [&members](Member member) { return members[member].summary->failure.has_value(); };
  const Members all = WithFigure(members, &RankSummary::peak_allocated_bytes);
  const auto failed = static_cast<std::size_t>(std::count_if(all.begin(), all.end(), has_failed));
  const bool is_usual = failed > all.size() / 2;  // to fail: then it tells no odd ones
  const std::size_t least = std::max(kLeastStageRanks, (members.size() + kLeastStageShare - 1) / kLeastStageShare);
  std::vector<FleetStage> out;
  for (Members& run : RunsOfPeaks(members)) {
    const auto odd = is_usual ? 0 : static_cast<std::size_t>(std::count_if(run.begin(), run.end(), has_failed));
    if (run.size() - odd >= least) out.push_back(StageOf(members, std::move(run)));
  }
  if (out.size() < 2) return {};
  std::sort(out.begin(), out.end(),
            [](const FleetStage& a, const FleetStage& b) { return a.members.front() < b.members.front(); });
  return out;
}

std::vector<FleetOutlier> FindOutliers(const std::vector<FleetMember>& members, const std::vector<FleetStage>& stages) {
  std::vector<FleetOutlier> out;
  for (const Compared& compared : ComparedTogether(members, stages)) {
    for (const RankFigure& figure : kFigures) AddOutliers(members, compared, figure, out);
  }
  std::stable_sort(out.begin(), out.end(), [](const FleetOutlier& a, const FleetOutlier& b) {
    const std::uint64_t x = FigureDistance(a.bytes, a.median_bytes);
    const std::uint64_t y = FigureDistance(b.bytes, b.median_bytes);
    return x != y ? x > y : a.member < b.member;
  });
  return out;
}

// The parts of fleet.h that put ranks together by what they have in common: causes, growth, settings.

namespace {

const RankCause* FirstSickness(const RankSummary& summary) {
  for (const RankCause& cause : summary.causes) {
    if (cause.is_sickness) return &cause;
  }
  return nullptr;
}

// The line that most of them name, the first in the alphabet of those named as often.
void SetLine(const std::map<std::string, std::size_t>& lines, FleetCause& out) {
  for (const auto& [line, count] : lines) {
    if (line.empty() || count <= out.line_members) continue;
    out.line = line;
    out.line_members = count;
  }
}

class CauseGroup {
 public:
  void Add(Member member, const RankSummary& summary, const RankCause& cause) {
    out_.name = cause.name;
    out_.sentence = cause.sentence;
    out_.members.push_back(member);
    bytes_.push_back(cause.bytes);
    ++lines_[cause.line];
    if (FirstSickness(summary)->name != cause.name) return;
    out_.first_of.push_back(member);
    if (summary.failure.has_value()) out_.failed.push_back(member);
  }

  FleetCause Finish() {
    out_.median_bytes = MedianOf(bytes_);
    out_.most_bytes = *std::max_element(bytes_.begin(), bytes_.end());
    SetLine(lines_, out_);
    return std::move(out_);
  }

 private:
  FleetCause out_;
  std::vector<std::uint64_t> bytes_;
  std::map<std::string, std::size_t> lines_;
};

}  // namespace

std::vector<FleetCause> GroupCauses(const std::vector<FleetMember>& members) {
  std::map<std::string, CauseGroup> groups;
  for (Member member = 0; member < members.size(); ++member) {
    if (!members[member].summary.has_value()) continue;
    const RankSummary& summary = *members[member].summary;
    for (const RankCause& cause : summary.causes) {
      if (cause.is_sickness) groups[cause.name].Add(member, summary, cause);
    }
  }
  std::vector<FleetCause> out;
  for (auto& [name, group] : groups) out.push_back(group.Finish());
  const auto weight = [](const FleetCause& cause) {
    return std::tuple(cause.failed.size(), cause.first_of.size(), cause.members.size(), cause.median_bytes);
  };
  std::stable_sort(out.begin(), out.end(),
                   [&](const FleetCause& a, const FleetCause& b) { return weight(a) > weight(b); });
  return out;
}

std::vector<FleetGrowth> GroupGrowths(const std::vector<FleetMember>& members) {
  std::map<std::string, FleetGrowth> groups;
  for (Member member = 0; member < members.size(); ++member) {
    const auto& summary = members[member].summary;
    if (!summary.has_value() || !summary->growth.has_value()) continue;
    const RankGrowth& growth = *summary->growth;
    FleetGrowth& group = groups[growth.line];
    if (group.members.empty()) group = {{}, growth.bytes_per_step, 0, growth.line};
    group.members.push_back(member);
    group.least_bytes_per_step = std::min(group.least_bytes_per_step, growth.bytes_per_step);
    group.most_bytes_per_step = std::max(group.most_bytes_per_step, growth.bytes_per_step);
  }
  std::vector<FleetGrowth> out;
  for (auto& [line, group] : groups) out.push_back(std::move(group));
  std::stable_sort(out.begin(), out.end(), [](const FleetGrowth& a, const FleetGrowth& b) {
    return a.most_bytes_per_step > b.most_bytes_per_step;
  });
  return out;
}

std::vector<FleetSettings> GroupSettings(const std::vector<FleetMember>& members) {
  std::map<std::tuple<std::string, std::string, std::optional<std::uint64_t>>, Members> groups;
  for (Member member = 0; member < members.size(); ++member) {
    const auto& summary = members[member].summary;
    if (!summary.has_value() || summary->compat.empty()) continue;
    groups[{summary->conf, summary->compat, summary->total_bytes}].push_back(member);
  }
  std::vector<FleetSettings> out;
  for (auto& [key, of] : groups) {
    out.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), std::move(of)});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const FleetSettings& a, const FleetSettings& b) { return a.members.size() > b.members.size(); });
  return out;
}

// The part of fleet.h that tries one setting in all ranks: their rows, replayed file by file, become those of a sweep.

namespace {

const RankRow* RowUnder(const RankSummary& summary, const std::string& conf) {
  for (std::size_t i = 1; i < summary.rows.size(); ++i) {
    if (summary.rows[i].conf == conf) return &summary.rows[i];
  }
  return nullptr;
}

class TriedTogether {
 public:
  explicit TriedTogether(const std::vector<FleetMember>& members) : members_(members) {
    for (Member member = 0; member < members.size(); ++member) {
      if (members[member].summary.has_value() && !members[member].summary->rows.empty()) out_.members.push_back(member);
    }
  }

  std::optional<FleetTried> Run() {
    if (out_.members.empty()) return std::nullopt;
    carried_ = Summary(0).carried;
    for (std::size_t i = 0; i < out_.members.size(); ++i) {
      if (Summary(i).carried != carried_) out_.carried_differ = true;
    }
    if (out_.carried_differ) carried_ = "";
    AddRecorded();
    for (const std::string& conf : Confs()) AddConf(conf);
    out_.result.is_search = false;
    out_.result.is_complete = true;
    whatif::FinishRows(carried_, out_.result);
    return std::move(out_);
  }

 private:
  const RankSummary& Summary(std::size_t i) const { return *members_[out_.members[i]].summary; }

  // Of all ranks, as the first one to know each has them.
  std::vector<std::string> Confs() const {
    std::vector<std::string> out;
    std::set<std::string> seen;
    for (std::size_t i = 0; i < out_.members.size(); ++i) {
      for (std::size_t row = 1; row < Summary(i).rows.size(); ++row) {
        const std::string& conf = Summary(i).rows[row].conf;
        if (seen.insert(conf).second) out.push_back(conf);
      }
    }
    return out;
  }

  void AddRecorded() {
    whatif::SweepRow row;
    row.is_baseline = true;
    row.conf = Summary(0).conf;
    for (std::size_t i = 0; i < out_.members.size(); ++i) {
      if (Summary(i).conf != row.conf) out_.result.recorded_confs_differ = true;
    }
    if (out_.result.recorded_confs_differ) row.conf = "";
    for (std::size_t i = 0; i < out_.members.size(); ++i) {
      whatif::AddTrace(Summary(i).rows.front().row, row);
      row.traces.back().conf = Summary(i).conf;
    }
    Keep(std::move(row));
  }

  // One that a rank's version does not know cannot serve all, and one that no rank decides otherwise under is no other.
  void AddConf(const std::string& conf) {
    whatif::SweepRow row;
    row.conf = whatif::JoinConfs(conf, carried_);
    bool is_other = false;
    for (std::size_t i = 0; i < out_.members.size(); ++i) {
      const RankRow* of_rank = RowUnder(Summary(i), conf);
      if (of_rank == nullptr) {
        out_.left_out.push_back(conf);
        return;
      }
      is_other = is_other || !of_rank->is_recorded;
      whatif::AddTrace(of_rank->row, row);
    }
    if (is_other) Keep(std::move(row));
  }

  void Keep(whatif::SweepRow row) {
    out_.result.replays += row.traces.size();
    out_.result.rows.push_back(std::move(row));
  }

  const std::vector<FleetMember>& members_;
  std::string carried_;
  FleetTried out_;
};

}  // namespace

std::optional<FleetTried> TryTogether(const std::vector<FleetMember>& members) { return TriedTogether(members).Run(); }

}  // namespace ashlar::answers
