// The parts of settings_space.h that are about how a conf is written.
#include <array>
#include <bit>
#include <cmath>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/policy/conf_split.h"
#include "allocator/policy/placement_plan.h"
#include "analyzer/remedies/settings_space.h"

namespace ashlar::remedies {
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

std::string ConfOf(const Setting& setting) {
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

std::optional<Setting> SettingOf(const policy::Options& options) {
  if (!IsPlain(options)) return std::nullopt;
  Setting out;
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

}  // namespace ashlar::remedies
