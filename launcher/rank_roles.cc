#include "launcher/rank_roles.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "launcher/json_fields.h"

namespace ashlar::cli {
namespace {

using RankJson = nlohmann::json;

RankGroup RanksOf(const RankJson& list) {
  RankGroup out;
  if (!list.is_array()) return out;
  for (const RankJson& rank : list) {
    if (rank.is_number_unsigned() && rank.get<std::uint64_t>() < 1'000'000) out.push_back(rank.get<int>());
  }
  return out;
}

std::vector<RankGroup> GroupsOf(const RankJson& file, const char* key) {
  std::vector<RankGroup> out;
  for (const RankJson& group : GetArray(file, key)) out.push_back(RanksOf(group));
  return out;
}

constexpr std::size_t kLeastSteps = 4;  // that are written in short

// Past the last of those that follow each other by the step of the first two; where that is 1, `begin`.
std::size_t StepsEnd(const std::vector<int>& ranks, std::size_t begin) {
  if (begin + 1 >= ranks.size() || ranks[begin + 1] == ranks[begin] + 1) return begin;
  std::size_t end = begin + 2;
  while (end < ranks.size() && ranks[end] - ranks[end - 1] == ranks[begin + 1] - ranks[begin]) ++end;
  return end;
}

bool Holds(const RankGroup& group, int rank) { return std::find(group.begin(), group.end(), rank) != group.end(); }

// Whether the two lie alike: the same distances from their first rank.
bool LieAlike(const RankGroup& a, const RankGroup& b) {
  if (a.size() != b.size() || a.empty()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] - a[0] != b[i] - b[0]) return false;
  }
  return true;
}

// nullopt: the process made no process group, or the file cannot be read.
std::optional<RankEvidence> EvidenceOf(const std::filesystem::path& path) {
  std::ifstream text(path);
  const RankJson file = RankJson::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!file.is_object() || !file.contains("rank") || !file["rank"].is_number()) return std::nullopt;
  RankEvidence out{Get<int>(file, "rank"), Get<int>(file, "world", 1), GroupsOf(file, "groups"),
                   GroupsOf(file, "used"), GroupsOf(file, "paired"),   {}};
  if (file.contains("peers")) out.peers = RanksOf(file["peers"]);
  return out;
}

}  // namespace

std::optional<RankEvidence> ReadRankEvidence(const std::string& folder) {
  std::optional<RankEvidence> out;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!absl::StartsWith(name, "ranks-") || !absl::EndsWith(name, ".json")) continue;
    std::optional<RankEvidence> told = EvidenceOf(entry.path());
    if (told.has_value() && (!out.has_value() || told->rank < out->rank)) out = std::move(told);
  }
  return out;
}

void RoleSearch::Add(const RankEvidence& evidence) {
  told_.push_back(evidence);
  for (const RankGroup& group : evidence.groups) {
    if (std::find(groups_.begin(), groups_.end(), group) == groups_.end()) groups_.push_back(group);
  }
  // Of a pipeline along which rank 0 lies: others' peers are at their own places of theirs.
  if (!stages_.contains(evidence.rank)) return;
  for (const int peer : evidence.peers) {
    if (peer >= 0 && peer < ranks_) stages_.insert(peer);
  }
}

void RoleSearch::AddLast(const RankGroup& group, std::vector<RoleToRun>& out) {
  const int last = *std::max_element(group.begin(), group.end());
  if (last >= ranks_ || !asked_.insert(last).second) return;
  out.push_back({last, absl::StrCat("last of the ", group.size(), " ranks ", RangesText(group))});
}

std::vector<RoleToRun> RoleSearch::Next() {
  std::vector<RoleToRun> out;
  const auto stage = std::find_if(stages_.begin(), stages_.end(), [&](int of) { return !asked_.contains(of); });
  if (stage != stages_.end()) {
    asked_.insert(*stage);
    out.push_back({*stage, "stage"});
  }
  for (const RankEvidence& told : told_) {
    if (told.rank != 0) continue;
    for (const RankGroup& group : told.used) {
      const bool is_paired = std::find(told.paired.begin(), told.paired.end(), group) != told.paired.end();
      const bool is_world = static_cast<int>(group.size()) == ranks_;
      if (group.size() < 2 || !Holds(group, 0) || is_paired || (is_world && stages_.size() > 1)) continue;
      AddLast(group, out);
    }
  }
  return out;
}

const RankGroup* RoleSearch::Pipeline() const {
  const RankGroup* out = nullptr;
  for (const RankGroup& group : groups_) {
    const bool has_all =
        std::all_of(stages_.begin(), stages_.end(), [&group](int stage) { return Holds(group, stage); });
    if (has_all && (out == nullptr || group.size() < out->size())) out = &group;
  }
  return out != nullptr && out->size() == stages_.size() ? out : nullptr;
}

std::vector<int> RoleSearch::Stages() const {
  const RankGroup* const pipeline = Pipeline();
  return pipeline != nullptr && stages_.size() > 1 ? *pipeline : std::vector<int>(stages_.begin(), stages_.end());
}

bool RoleSearch::has_told_stages() const { return stages_.size() == 1 || Pipeline() != nullptr; }

int RoleSearch::StageOf(int rank) const {
  if (const RankGroup* const pipeline = Pipeline(); pipeline != nullptr && stages_.size() > 1) {
    for (const RankGroup& group : groups_) {
      const auto place = std::find(group.begin(), group.end(), rank);
      if (place != group.end() && LieAlike(group, *pipeline)) {
        return (*pipeline)[static_cast<std::size_t>(place - group.begin())];
      }
    }
  }
  return *std::prev(stages_.upper_bound(rank));
}

std::vector<int> RoleSearch::StandsFor(int stage, const std::set<int>& themselves) const {
  std::vector<int> out;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (rank == stage || (!themselves.contains(rank) && StageOf(rank) == stage)) out.push_back(rank);
  }
  return out;
}

std::string RangesText(const std::vector<int>& ranks) {
  std::string out;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = StepsEnd(ranks, i);
    if (end - i >= kLeastSteps) {
      absl::StrAppend(&out, out.empty() ? "" : ", ", ranks[i], ", ", ranks[i + 1], ", ..., ", ranks[end - 1]);
      i = end;
      continue;
    }
    end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    absl::StrAppend(&out, out.empty() ? "" : ", ", ranks[i]);
    if (end - i > 1) absl::StrAppend(&out, "-", ranks[end - 1]);
    i = end;
  }
  return out;
}

}  // namespace ashlar::cli
