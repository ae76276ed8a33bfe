// The parts of fleet.h that put ranks together by what they have in common: causes, growth, settings.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "analyzer/answers/fleet.h"

namespace ashlar::answers {
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

}  // namespace ashlar::answers
