// Causes that show between ranks.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/causes/cause_table.h"
#include "analyzer/analyses/causes/evidence.h"

namespace ashlar::analyses {
namespace {

constexpr double kLeastSpread = 0.05;  // between ranks, of the median peak

}  // namespace

CauseFinding DetectRankImbalance(const CauseContext& context) {
  constexpr CauseKind kKind = CauseKind::kRankImbalance;
  if (context.device.ranks.size() < 2) {
    return NotInTrace(kKind, "the snapshots of several ranks would tell: one file is one process");
  }
  std::vector<RankPeak> ranks(context.device.ranks.begin(), context.device.ranks.end());
  std::sort(ranks.begin(), ranks.end(), [](const RankPeak& a, const RankPeak& b) {
    return std::pair(a.allocated_bytes, a.rank) < std::pair(b.allocated_bytes, b.rank);
  });
  const std::uint64_t median = ranks[(ranks.size() - 1) / 2].allocated_bytes;
  const std::uint64_t bytes = ranks.back().allocated_bytes - median;
  const std::string share = ShareText(bytes, median);
  if (static_cast<double>(bytes) < kLeastSpread * static_cast<double>(median) || bytes < kLeastMaterialBytes) {
    return Absent(kKind, absl::StrCat("the highest of ", ranks.size(), " ranks peaks ", share, " above the median"));
  }
  CauseFinding out = Found(kKind, Confidence::kProven, bytes);
  out.evidence.push_back(absl::StrCat("rank ", ranks.back().rank, " peaks at ",
                                      FormatBytes(ranks.back().allocated_bytes), " allocated, ", FormatBytes(bytes),
                                      " (", share, ") above the median of ", ranks.size(), " ranks"));
  return out;
}

}  // namespace ashlar::analyses
