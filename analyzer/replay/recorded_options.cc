#include "analyzer/replay/recorded_options.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "allocator/device/driver_addresses.h"
#include "allocator/policy/conf_split.h"
#include "allocator/policy/size_rule.h"
#include "allocator/policy/strategy.h"
#include "allocator/trace/backend.h"

namespace ashlar::replay {
namespace {

bool HasAny(const trace::RecordedSettings& settings, absl::Span<const absl::string_view> keys) {
  return std::any_of(keys.begin(), keys.end(),
                     [&](absl::string_view key) { return settings.values.count(std::string(key)) > 0; });
}

std::optional<std::uint64_t> Number(const trace::RecordedSettings& settings, const char* key) {
  const auto it = settings.values.find(key);
  std::uint64_t value = 0;
  if (it == settings.values.end() || !absl::SimpleAtoi(it->second, &value) || value == 0) return std::nullopt;
  return value;
}

// "{1: 0, 2: 4, ...}" in whatever brackets and quotes: interval start in MiB, divisions.
void ReadDivisions(const std::string& text, policy::Options& options) {
  for (absl::string_view item : absl::StrSplit(text, ',')) {
    const std::vector<std::string> pair = absl::StrSplit(item, ':');
    std::uint64_t boundary = 0;
    std::uint64_t divisions = 0;
    const auto digits = [](std::string field) {
      field.erase(std::remove_if(field.begin(), field.end(), [](char c) { return c < '0' || c > '9'; }), field.end());
      return field;
    };
    if (pair.size() != 2 || !absl::SimpleAtoi(digits(pair[0]), &boundary) ||
        !absl::SimpleAtoi(digits(pair[1]), &divisions) || !std::has_single_bit(boundary)) {
      continue;
    }
    const auto interval = static_cast<std::size_t>(std::countr_zero(boundary));
    if (interval < options.roundup_power2_divisions.size()) options.roundup_power2_divisions[interval] = divisions;
  }
}

// Those that the record has.
void ApplyValues(const trace::RecordedSettings& settings, policy::Options& options) {
  const bool has_expandable = policy::RulesOf(options.compat).has_expandable_segments;
  if (settings.max_split_size_bytes.has_value() || HasAny(settings, {"max_split_size"})) {
    options.max_split_size_bytes = settings.max_split_size_bytes.value_or(policy::kUnlimited);
  }
  if (settings.garbage_collection_threshold > 0 || HasAny(settings, {"garbage_collection_threshold"})) {
    options.garbage_collection_threshold = settings.garbage_collection_threshold;
  }
  if (settings.expandable_segments || HasAny(settings, {"expandable_segments"})) {
    options.expandable_segments = settings.expandable_segments && has_expandable;
  }
  if (const auto bytes = Number(settings, "large_segment_size"); bytes.has_value()) {
    options.large_segment_bytes = *bytes;
    options.max_non_split_rounding_bytes = *bytes;
  }
  if (const auto bytes = Number(settings, "max_non_split_rounding_size"); bytes.has_value()) {
    options.max_non_split_rounding_bytes = *bytes;
  }
  const auto divisions = settings.values.find("roundup_power2_divisions");
  if (divisions != settings.values.end()) ReadDivisions(divisions->second, options);
}

// A snapshot that was made of a recording says in its settings whose rules it had, where they name them.
std::optional<policy::Compat> NamedCompat(const trace::Snapshot& snapshot) {
  std::optional<policy::Compat> out;
  if (!snapshot.settings.has_value()) return out;
  for (const auto& setting : policy::SplitAsFarAsItGoes(snapshot.settings->conf, policy::Grammar::kLater).settings) {
    const absl::StatusOr<policy::Compat> compat = policy::ParseCompat(setting.value);
    if (setting.key == "compat" && compat.ok()) out = *compat;
  }
  return out;
}

bool Has(const trace::Snapshot& snapshot, policy::SnapshotPart part) {
  switch (part) {
    case policy::SnapshotPart::kNone:
      return false;
    case policy::SnapshotPart::kHistory:
      return snapshot.settings.has_value() || !snapshot.device_traces.empty() || snapshot.traits.has_requested_bytes;
    case policy::SnapshotPart::kPoolIds:
      return snapshot.traits.has_pool_ids;
    case policy::SnapshotPart::kHost:
      return snapshot.traits.has_host;
  }
  return false;
}

}  // namespace

const policy::TorchRules& RulesShownBy(const trace::Snapshot& snapshot, absl::Span<const policy::TorchRules> rules) {
  const auto shows = [&](const policy::TorchRules& row) {
    return Has(snapshot, row.shown_by) ||
           (snapshot.settings.has_value() && HasAny(*snapshot.settings, row.shown_by_settings));
  };
  return *std::find_if(rules.rbegin(), rules.rend() - 1, shows);
}

bool IsRecordedCompat(const trace::Snapshot& snapshot, policy::Compat compat) {
  return snapshot.recording.has_value() && snapshot.recording->compat == policy::CompatName(compat);
}

policy::Compat GuessCompat(const trace::Snapshot& snapshot) {
  if (snapshot.recording.has_value()) {
    const absl::StatusOr<policy::Compat> recorded = policy::ParseCompat(snapshot.recording->compat);
    if (recorded.ok()) return *recorded;
  }
  if (const std::optional<policy::Compat> named = NamedCompat(snapshot); named.has_value()) return *named;
  if (trace::BackendOf(snapshot) == trace::Backend::kXpu) return policy::Compat::kTorchXpu;
  return RulesShownBy(snapshot, policy::AllTorchRules()).compat;
}

absl::StatusOr<policy::Options> RecordedOptions(const trace::Snapshot& snapshot, policy::Compat compat) {
  const std::string conf = snapshot.settings.has_value() ? snapshot.settings->conf : "";
  // Keys of ours also where PyTorch's format has it: the file may have been made of a recording.
  policy::Options options = policy::ReadRecordedConf(conf, compat);
  if (snapshot.settings.has_value()) ApplyValues(*snapshot.settings, options);
  if (IsRecordedCompat(snapshot, compat)) {
    const absl::StatusOr<policy::FreeOrder> order = policy::ParseFreeOrder(snapshot.recording->free_order);
    if (!order.ok()) return order.status();
    options.free_order = *order;
  }
  return options;
}

timeline::BlockSizeRule SizeRuleOf(const policy::Options& options) {
  timeline::BlockSizeRule rule;
  rule.rounded_bytes = [options](std::uint64_t requested) {
    return policy::RoundedBytes(std::clamp<std::uint64_t>(requested, 1, policy::kMaxRequestBytes), options);
  };
  rule.small_max_bytes = policy::kSmallMaxBytes;
  rule.max_tail_bytes = policy::kSmallMaxBytes;
  rule.max_split_size_bytes = options.max_split_size_bytes;
  rule.expandable_option = options.expandable_segments;
  rule.large_page_bytes = policy::StrategyOf(options.policy).traits().pages_tell_pool ? options.large_segment_bytes : 0;
  return rule;
}

namespace {

using timeline::EventIndex;

constexpr std::size_t kMostSegments = 1000;

// The segments at a time, in the range that any of them has been in.
class SegmentPlaces {
 public:
  void Add(std::uint64_t address, std::uint64_t size_bytes) {
    live_[address] = address + size_bytes;
    lowest_ = std::min(lowest_, address);
    highest_ = std::max(highest_, address + size_bytes);
  }
  void Remove(std::uint64_t address) { live_.erase(address); }
  bool IsEmpty() const { return live_.empty(); }

  std::uint64_t LowestFit(std::uint64_t size_bytes) const {
    std::uint64_t at = lowest_;
    for (const auto& [begin, end] : live_) {
      if (begin >= at && begin - at >= size_bytes) break;
      at = std::max(at, end);
    }
    return at;
  }
  std::uint64_t HighestFit(std::uint64_t size_bytes) const {
    std::uint64_t top = highest_;
    for (auto it = live_.rbegin(); it != live_.rend(); ++it) {
      if (top >= it->second && top - it->second >= size_bytes) break;
      top = std::min(top, it->first);
    }
    return top - size_bytes;
  }

 private:
  std::map<std::uint64_t, std::uint64_t> live_;  // begin -> end
  std::uint64_t lowest_ = UINT64_MAX;
  std::uint64_t highest_ = 0;
};

// The same segments on a device of its own, from the first on.
class DriverPlaces {
 public:
  // Whether the driver's rule puts the segment where it was, as seen from the first.
  bool Add(std::uint64_t address, std::uint64_t size_bytes) {
    const std::uint64_t rounded = (size_bytes + kGranularityBytes - 1) / kGranularityBytes * kGranularityBytes;
    const std::optional<std::uint64_t> taken = addresses_.Take(rounded);
    if (!taken.has_value()) return false;
    live_[address] = {*taken, rounded};
    if (!offset_.has_value()) offset_ = address - *taken;
    return address - *taken == *offset_;
  }
  void Remove(std::uint64_t address) {
    const auto at = live_.find(address);
    if (at == live_.end()) return;
    addresses_.Give(at->second.first, at->second.second);
    live_.erase(at);
  }

 private:
  static constexpr std::uint64_t kGranularityBytes = std::uint64_t{2} << 20;

  device::DriverAddresses addresses_{std::uint64_t{1} << 40, std::uint64_t{1} << 46};
  std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> live_;  // recorded address -> ours, bytes
  std::optional<std::uint64_t> offset_;
};

// The ordinary ones, by when they began.
std::vector<const timeline::SegmentSpan*> InOrder(absl::Span<const timeline::SegmentSpan> segments) {
  std::vector<const timeline::SegmentSpan*> out;
  for (const timeline::SegmentSpan& segment : segments) {
    if (!segment.is_expandable) out.push_back(&segment);
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto* a, const auto* b) { return a->BeginEvent() < b->BeginEvent(); });
  return out;
}

}  // namespace

device::AddressOrder RecordedAddressOrder(absl::Span<const timeline::SegmentSpan> segments) {
  using End = std::pair<EventIndex, std::uint64_t>;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends;
  SegmentPlaces places;
  DriverPlaces driver_places;
  std::size_t told = 0;
  std::size_t ascending = 0;
  std::size_t descending = 0;
  std::size_t driver = 0;
  bool is_whole = true;
  for (const timeline::SegmentSpan* segment : InOrder(segments)) {
    const auto& [begin, address, size_bytes] = segment->extents.front();
    for (; !ends.empty() && ends.top().first < begin; ends.pop()) {
      places.Remove(ends.top().second);
      driver_places.Remove(ends.top().second);
    }
    is_whole = is_whole && begin != timeline::kBeforeWindow;
    const bool is_as_driver = driver_places.Add(address, size_bytes);
    if (begin != timeline::kBeforeWindow && !places.IsEmpty()) {
      if (++told > kMostSegments) break;
      driver += is_whole && is_as_driver ? 1 : 0;
      ascending += address == places.LowestFit(size_bytes) ? 1 : 0;
      descending += address == places.HighestFit(size_bytes) ? 1 : 0;
    }
    places.Add(address, size_bytes);
    if (segment->end_event != timeline::kNever) ends.emplace(segment->end_event, address);
  }
  told = std::min(told, kMostSegments);
  if (told > 0 && 10 * driver >= 9 * told) return device::AddressOrder::kDriver;
  if (10 * ascending >= 9 * told) return device::AddressOrder::kAscending;
  return 10 * descending >= 9 * told ? device::AddressOrder::kDescending : device::AddressOrder::kDriver;
}

}  // namespace ashlar::replay
