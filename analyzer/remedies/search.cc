#include "analyzer/remedies/search.h"

#include <algorithm>

namespace ashlar::remedies {
namespace {

constexpr std::size_t kBestFollowed = 3;

int KindOf(const Setting& setting) { return setting.expandable ? 2 : setting.split_mb > 0 ? 1 : 0; }

// The settings whose neighbours are looked at, in rank order.
std::vector<Setting> Followed(const std::vector<Setting>& ranked) {
  std::vector<Setting> out;
  bool has_kind[3] = {};
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    bool& has = has_kind[KindOf(ranked[i])];
    if (i < kBestFollowed || !has) out.push_back(ranked[i]);
    has = true;
  }
  return out;
}

}  // namespace

std::vector<Setting> NextRound(const SettingsSpace& space, const std::vector<Setting>& ranked, std::uint64_t budget) {
  std::vector<Setting> out;
  if (ranked.empty()) {
    out = space.All();
    if (out.size() > budget) out = space.CoarseGrid();
  } else {
    std::vector<Setting> tried = ranked;
    std::sort(tried.begin(), tried.end());
    for (const Setting& setting : Followed(ranked)) {
      for (const Setting& next : space.Neighbours(setting, tried)) {
        if (std::find(out.begin(), out.end(), next) == out.end()) out.push_back(next);
      }
    }
  }
  const std::uint64_t left = budget > ranked.size() ? budget - ranked.size() : 0;
  if (out.size() > left) out.resize(left);
  return out;
}

}  // namespace ashlar::remedies
