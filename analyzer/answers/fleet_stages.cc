// The parts of fleet.h that compare figures: stages and outliers.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "allocator/base/units.h"
#include "analyzer/answers/fleet.h"

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

struct NamedFigure {
  const char* name;
  Figure figure;
};
constexpr NamedFigure kFigures[] = {{"peak_allocated", &RankSummary::peak_allocated_bytes},
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

void AddOutliers(const std::vector<FleetMember>& members, const Compared& compared, const NamedFigure& figure,
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
    for (const NamedFigure& figure : kFigures) AddOutliers(members, compared, figure, out);
  }
  std::stable_sort(out.begin(), out.end(), [](const FleetOutlier& a, const FleetOutlier& b) {
    const std::uint64_t x = FigureDistance(a.bytes, a.median_bytes);
    const std::uint64_t y = FigureDistance(b.bytes, b.median_bytes);
    return x != y ? x > y : a.member < b.member;
  });
  return out;
}

}  // namespace ashlar::answers
