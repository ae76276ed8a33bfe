#include "analyzer/analyses/steps/size_map.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace ashlar::analyses {
namespace {

constexpr std::uint64_t kLeastTelling = 4096;

std::uint64_t Scaled(std::uint64_t bytes, double ratio) {
  return static_cast<std::uint64_t>(std::llround(static_cast<double>(bytes) * ratio));
}

}  // namespace

double Ratios::Median() const {
  if (!median_.has_value()) {
    std::vector<double> values = values_;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    median_ = *middle;
  }
  return *median_;
}

void SizeMap::Add(std::uint32_t token, std::uint64_t before, std::uint64_t now) {
  if (before == 0 || now == 0) return;
  by_stack_[{token, before}] = now;
  // Where two requests of a size went apart, the one that changed is the one that follows the batch.
  if (auto [place, is_new] = by_size_.try_emplace(before, now); !is_new && now != before) place->second = now;
  // Counters and flags of a few bytes say nothing of the batch.
  if (before < kLeastTelling) return;
  const double ratio = static_cast<double>(now) / static_cast<double>(before);
  ratios_of_[token].Add(ratio);
  if (now != before) ratios_.Add(ratio);
}

std::uint64_t SizeMap::Of(std::uint32_t token, std::uint64_t before, bool lasts) const {
  if (!Changes()) return before;
  if (lasts && lasting_.count(before) > 0) return before;
  if (const auto seen = by_stack_.find({token, before}); seen != by_stack_.end()) return seen->second;
  if (const auto seen = by_size_.find(before); seen != by_size_.end()) return seen->second;
  if (lasting_.count(before) > 0 || before < kLeastTelling) return before;
  if (const auto seen = ratios_of_.find(token); seen != ratios_of_.end()) return Scaled(before, seen->second.Median());
  return Scaled(before, ratios_.Median());
}

}  // namespace ashlar::analyses
