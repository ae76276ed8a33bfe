// The parts of settings_space.h that are about how a conf is written.

#include "analyzer/whatif/settings_space.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/policy/conf_split.h"
#include "allocator/policy/placement_plan.h"
#include "allocator/policy/size_rule.h"

namespace ashlar::whatif {
namespace {

constexpr std::array<absl::string_view, 7> kSearchedKeys = {"expandable_segments",
                                                            "max_split_size_mb",
                                                            "max_non_split_rounding_mb",
                                                            "large_segment_size_mb",
                                                            "roundup_power2_divisions",
                                                            "garbage_collection_threshold",
                                                            "plan"};

// Of a conf that can be parsed.
std::vector<policy::Setting> SettingsIn(const std::string& conf) {
  absl::StatusOr<std::vector<policy::Setting>> settings = policy::SplitConf(conf);
  return settings.ok() ? *std::move(settings) : std::vector<policy::Setting>{};
}

// Divisions of 1 round as 0 does since 2.6.
bool IsPlain(const policy::Options& options) {
  for (const std::uint64_t divisions : options.roundup_power2_divisions) {
    if (divisions != options.roundup_power2_divisions.front()) return false;
  }
  return true;
}

auto Decisions(const policy::Options& o) {
  return std::tuple(o.compat, o.policy, o.large_segment_bytes, o.max_split_size_bytes, o.max_non_split_rounding_bytes,
                    o.garbage_collection_threshold, o.expandable_segments, o.throw_on_cudamalloc_oom,
                    o.roundup_power2_divisions, o.roundup_bypass_threshold_bytes, o.per_process_memory_fraction,
                    o.expandable_reserve.fraction_of_total, o.expandable_reserve.bytes, o.search_after_sync,
                    o.sync_just_enough, o.borrow_across_streams, o.borrow_most_waits, o.memory_limit_bytes);
}

}  // namespace

std::string ConfOf(const SettingPoint& setting) {
  std::string out;
  const auto add = [&out](absl::string_view key, const std::string& value) {
    absl::StrAppend(&out, out.empty() ? "" : ",", key, ":", value);
  };
  if (setting.expandable) add("expandable_segments", "True");
  if (setting.split_mb > 0) add("max_split_size_mb", absl::StrCat(setting.split_mb));
  if (setting.non_split_rounding_mb > 0) {
    add("max_non_split_rounding_mb", absl::StrCat(setting.non_split_rounding_mb));
  }
  if (setting.large_segment_mb > 0) add("large_segment_size_mb", absl::StrCat(setting.large_segment_mb));
  if (setting.divisions > 0) add("roundup_power2_divisions", absl::StrCat(setting.divisions));
  if (setting.threshold_percent > 0) {
    add("garbage_collection_threshold", absl::StrFormat("0.%02d", setting.threshold_percent));
  }
  return out;
}

std::size_t KeyCount(const std::string& conf) { return SettingsIn(conf).size(); }

std::optional<SettingPoint> SettingOf(const policy::Options& options) {
  if (!IsPlain(options)) return std::nullopt;
  SettingPoint out;
  out.expandable = options.expandable_segments;
  out.divisions = options.roundup_power2_divisions.front();
  if (options.max_split_size_bytes != policy::kUnlimited) out.split_mb = options.max_split_size_bytes / kMiB;
  if (options.large_segment_bytes != policy::kDefaultLargeSegmentBytes) {
    out.large_segment_mb = options.large_segment_bytes / kMiB;
  }
  if (options.max_non_split_rounding_bytes != options.large_segment_bytes) {
    out.non_split_rounding_mb = options.max_non_split_rounding_bytes / kMiB;
  }
  out.threshold_percent = static_cast<std::uint64_t>(std::llround(options.garbage_collection_threshold * 100));
  const absl::StatusOr<policy::Options> again = policy::ParseConf(ConfOf(out), options.compat);
  if (!again.ok() || !SameDecisions(*again, options)) return std::nullopt;
  return out;
}

bool SameDecisions(const policy::Options& a, const policy::Options& b) {
  const bool has_same_plan = a.plan == b.plan || (a.plan != nullptr && b.plan != nullptr && *a.plan == *b.plan);
  return has_same_plan && Decisions(a) == Decisions(b);
}

std::string CarriedConf(const std::string& conf) {
  std::string out;
  for (const policy::Setting& setting : SettingsIn(conf)) {
    bool is_searched = false;
    for (const absl::string_view searched : kSearchedKeys) is_searched = is_searched || setting.key == searched;
    if (!is_searched) out = JoinConfs(out, absl::StrCat(setting.key, ":", setting.value));
  }
  return out;
}

std::string JoinConfs(const std::string& a, const std::string& b) { return policy::JoinedConf(a, b); }

namespace {

// Values of the keys that sizes do not decide. Divisions: up to a sixteenth of a power of two; thresholds: PyTorch's
// documentation shows 0.8. Roundings only matter with a split limit, large segments are even, as pages must be.
constexpr std::uint64_t kDivisions[] = {2, 4, 8, 16};
constexpr std::uint64_t kLargeSegmentsMb[] = {12, 32, 64};
constexpr std::uint64_t kNonSplitRoundingsMb[] = {64, 256};
constexpr std::uint64_t kThresholdPercents[] = {60, 80, 90};
constexpr std::size_t kCoarseSplits = 8;

std::uint64_t DefaultLargeMb() { return policy::kDefaultLargeSegmentBytes / kMiB; }

bool AllKnow(const std::vector<policy::Compat>& compats, const SettingPoint& setting) {
  const std::string conf = ConfOf(setting);
  return std::all_of(compats.begin(), compats.end(),
                     [&](policy::Compat compat) { return policy::ParseConf(conf, compat).ok(); });
}

// `values` that `make` turns into settings all versions know, after 0 for "not given".
template <typename Make>
std::vector<std::uint64_t> Known(const std::vector<policy::Compat>& compats, const std::uint64_t* begin,
                                 const std::uint64_t* end, Make make) {
  std::vector<std::uint64_t> out = {0};
  std::copy_if(begin, end, std::back_inserter(out), [&](std::uint64_t value) { return AllKnow(compats, make(value)); });
  return out;
}

// At most `most` of them, both ends among them, evenly spaced by position.
std::vector<std::uint64_t> Thinned(const std::vector<std::uint64_t>& values, std::size_t most) {
  if (values.size() <= most) return values;
  std::vector<std::uint64_t> out;
  for (std::size_t i = 0; i < most; ++i) out.push_back(values[i * (values.size() - 1) / (most - 1)]);
  return out;
}

std::uint64_t EvenMbAbove(std::uint64_t bytes) { return (bytes / (2 * kMiB) + 1) * 2; }

}  // namespace

std::vector<std::uint64_t> SplitLimits(const std::vector<RequestSize>& sizes, const policy::Options& options,
                                       std::uint64_t lowest_mb) {
  const std::uint64_t first = (lowest_mb / 2 + 1) * 2;
  std::set<std::uint64_t> limits = {first};
  std::uint64_t largest_segment_mb = 0;
  for (const RequestSize& size : sizes) {
    const std::uint64_t rounded = policy::RoundedBytes(size.bytes, options);
    if (rounded < policy::kMinLargeBytes) continue;
    const std::uint64_t segment = RoundUp(rounded, policy::kRoundLargeBytes);
    largest_segment_mb = std::max(largest_segment_mb, segment / kMiB);
    limits.insert(EvenMbAbove(rounded));  // the lowest even limit that the request is below
    limits.insert(EvenMbAbove(segment));  // the lowest that its segment is below
  }
  std::vector<std::uint64_t> out;
  for (const std::uint64_t limit : limits) {
    if (limit >= first && limit <= largest_segment_mb) out.push_back(limit);
  }
  return out;
}

SettingsSpace::SettingsSpace(const std::vector<RequestSize>& sizes, const SpaceLimits& limits) {
  const std::vector<policy::Compat>& compats = limits.compats;
  expandable_ = {false};
  if (AllKnow(compats, {.expandable = true})) expandable_.push_back(true);
  divisions_ = Known(compats, std::begin(kDivisions), std::end(kDivisions),
                     [](std::uint64_t value) { return SettingPoint{.divisions = value}; });
  large_segments_ = Known(compats, std::begin(kLargeSegmentsMb), std::end(kLargeSegmentsMb),
                          [](std::uint64_t value) { return SettingPoint{.large_segment_mb = value}; });
  non_split_roundings_ = Known(compats, std::begin(kNonSplitRoundingsMb), std::end(kNonSplitRoundingsMb),
                               [](std::uint64_t value) { return SettingPoint{.non_split_rounding_mb = value}; });
  thresholds_ = {0};
  if (limits.has_memory_limit) {
    thresholds_ = Known(compats, std::begin(kThresholdPercents), std::end(kThresholdPercents),
                        [](std::uint64_t value) { return SettingPoint{.threshold_percent = value}; });
  }
  for (const std::uint64_t divisions : divisions_) {
    for (const std::uint64_t large : large_segments_) {
      policy::Options rounding;
      rounding.compat = compats.front();
      rounding.roundup_power2_divisions.fill(divisions);
      splits_[{divisions, large}] = SplitLimits(sizes, rounding, large == 0 ? DefaultLargeMb() : large);
    }
  }
}

const std::vector<std::uint64_t>& SettingsSpace::Splits(std::uint64_t divisions, std::uint64_t large_segment_mb) const {
  return splits_.at({divisions, large_segment_mb});
}

bool SettingsSpace::Contains(const SettingPoint& setting) const {
  const auto has = [](const std::vector<std::uint64_t>& values, std::uint64_t value) {
    return std::find(values.begin(), values.end(), value) != values.end();
  };
  if (!has(divisions_, setting.divisions) || !has(large_segments_, setting.large_segment_mb)) return false;
  if (!has(non_split_roundings_, setting.non_split_rounding_mb) || !has(thresholds_, setting.threshold_percent)) {
    return false;
  }
  if (setting.expandable && (expandable_.size() < 2 || setting.split_mb > 0)) return false;
  if (setting.split_mb == 0) return setting.non_split_rounding_mb == 0;
  if (setting.non_split_rounding_mb > 0 && setting.non_split_rounding_mb == setting.large_segment_mb) return false;
  return has(Splits(setting.divisions, setting.large_segment_mb), setting.split_mb);
}

std::vector<SettingPoint> SettingsSpace::All() const {
  std::vector<SettingPoint> out;
  for (const bool expandable : expandable_) {
    for (const std::uint64_t large : large_segments_) {
      for (const std::uint64_t divisions : divisions_) {
        for (const std::uint64_t threshold : thresholds_) {
          const SettingPoint base{expandable, 0, 0, large, divisions, threshold};
          out.push_back(base);
          if (expandable) continue;
          for (const std::uint64_t split : Splits(divisions, large)) {
            for (const std::uint64_t rounding : non_split_roundings_) {
              const SettingPoint limited{false, split, rounding, large, divisions, threshold};
              if (Contains(limited)) out.push_back(limited);
            }
          }
        }
      }
    }
  }
  return out;
}

std::vector<SettingPoint> SettingsSpace::CoarseGrid() const {
  std::vector<SettingPoint> out = {{}};
  const auto add = [&](const SettingPoint& setting) {
    if (Contains(setting) && std::find(out.begin(), out.end(), setting) == out.end()) out.push_back(setting);
  };
  add({.expandable = true});
  for (const std::uint64_t split : Thinned(Splits(0, 0), kCoarseSplits)) add({.split_mb = split});
  for (const std::uint64_t value : divisions_) add({.divisions = value});
  for (const std::uint64_t value : large_segments_) add({.large_segment_mb = value});
  for (const std::uint64_t value : thresholds_) add({.threshold_percent = value});
  return out;
}

std::vector<std::uint64_t> SettingsSpace::SplitsNear(const SettingPoint& setting,
                                                     const std::vector<SettingPoint>& tried) const {
  const std::vector<std::uint64_t>& splits = Splits(setting.divisions, setting.large_segment_mb);
  std::vector<std::size_t> known;  // positions in `splits` tried with the same other keys
  for (SettingPoint other : tried) {
    const std::uint64_t split = std::exchange(other.split_mb, setting.split_mb);
    const auto it = std::lower_bound(splits.begin(), splits.end(), split);
    if (other == setting && it != splits.end() && *it == split) {
      known.push_back(static_cast<std::size_t>(it - splits.begin()));
    }
  }
  const auto here = std::lower_bound(splits.begin(), splits.end(), setting.split_mb);
  if (setting.split_mb == 0 || here == splits.end() || *here != setting.split_mb) {
    return known.empty() ? Thinned(splits, kCoarseSplits) : std::vector<std::uint64_t>{};
  }
  std::sort(known.begin(), known.end());
  const auto position = static_cast<std::size_t>(here - splits.begin());
  const auto above = std::upper_bound(known.begin(), known.end(), position);
  const auto below = std::lower_bound(known.begin(), known.end(), position);
  // Half way to the next limit tried, or to the end of the list.
  const std::size_t low = below == known.begin() ? 0 : *std::prev(below) + 1;
  const std::size_t high = above == known.end() ? splits.size() : *above;
  std::vector<std::uint64_t> out;
  if (low < position) out.push_back(splits[(low + position) / 2]);
  if (position + 1 < high) out.push_back(splits[(position + high) / 2]);
  return out;
}

std::vector<SettingPoint> SettingsSpace::Neighbours(const SettingPoint& setting,
                                                    const std::vector<SettingPoint>& tried) const {
  std::vector<SettingPoint> out;
  if (!Contains(setting)) return out;
  const auto add = [&](SettingPoint next) {
    if (next.split_mb == 0) next.non_split_rounding_mb = 0;
    if (next.split_mb > 0) {
      // Another rounding or another large segment moves the limits that matter: the next one up stands for this one.
      const std::vector<std::uint64_t>& splits = Splits(next.divisions, next.large_segment_mb);
      const auto it = std::lower_bound(splits.begin(), splits.end(), next.split_mb);
      if (it == splits.end()) return;
      next.split_mb = *it;
    }
    if (Contains(next) && !std::binary_search(tried.begin(), tried.end(), next)) out.push_back(next);
  };
  const auto vary = [&](std::uint64_t SettingPoint::*key, const std::vector<std::uint64_t>& values) {
    for (const std::uint64_t value : values) {
      SettingPoint next = setting;
      next.*key = value;
      add(next);
    }
  };
  SettingPoint toggled = setting;
  toggled.expandable = !setting.expandable;
  toggled.split_mb = 0;
  add(toggled);
  vary(&SettingPoint::divisions, divisions_);
  vary(&SettingPoint::large_segment_mb, large_segments_);
  vary(&SettingPoint::threshold_percent, thresholds_);
  vary(&SettingPoint::non_split_rounding_mb, non_split_roundings_);
  SettingPoint without = setting;
  without.split_mb = 0;
  add(without);
  if (!setting.expandable) vary(&SettingPoint::split_mb, SplitsNear(setting, tried));
  return out;
}

namespace {

constexpr std::size_t kBestFollowed = 3;

int KindOf(const SettingPoint& setting) { return setting.expandable ? 2 : setting.split_mb > 0 ? 1 : 0; }

// The settings whose neighbours are looked at, in rank order.
std::vector<SettingPoint> Followed(const std::vector<SettingPoint>& ranked) {
  std::vector<SettingPoint> out;
  bool has_kind[3] = {};
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    bool& has = has_kind[KindOf(ranked[i])];
    if (i < kBestFollowed || !has) out.push_back(ranked[i]);
    has = true;
  }
  return out;
}

}  // namespace

std::vector<SettingPoint> NextRound(const SettingsSpace& space, const std::vector<SettingPoint>& ranked,
                                    std::uint64_t budget) {
  std::vector<SettingPoint> out;
  if (ranked.empty()) {
    out = space.All();
    if (out.size() > budget) out = space.CoarseGrid();
  } else {
    std::vector<SettingPoint> tried = ranked;
    std::sort(tried.begin(), tried.end());
    for (const SettingPoint& setting : Followed(ranked)) {
      for (const SettingPoint& next : space.Neighbours(setting, tried)) {
        if (std::find(out.begin(), out.end(), next) == out.end()) out.push_back(next);
      }
    }
  }
  const std::uint64_t left = budget > ranked.size() ? budget - ranked.size() : 0;
  if (out.size() > left) out.resize(left);
  return out;
}

}  // namespace ashlar::whatif
