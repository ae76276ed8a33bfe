#include "allocator/policy/changed_settings.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace ashlar::policy {
namespace {

struct FixedKey {
  absl::string_view name;
  bool (*is_same)(const Options& a, const Options& b);
};

// Pages of expandable segments have the size of large segments.
bool SameLargeSegments(const Options& a, const Options& b) {
  return !a.expandable_segments || a.large_segment_bytes == b.large_segment_bytes;
}
bool SameReserve(const Options& a, const Options& b) {
  return a.expandable_reserve.bytes == b.expandable_reserve.bytes &&
         a.expandable_reserve.fraction_of_total == b.expandable_reserve.fraction_of_total;
}

constexpr FixedKey kFixed[] = {
    {"compat", [](const Options& a, const Options& b) { return a.compat == b.compat; }},
    {"free_order", [](const Options& a, const Options& b) { return a.free_order == b.free_order; }},
    {"policy", [](const Options& a, const Options& b) { return a.policy == b.policy; }},
    {"plan", [](const Options& a, const Options& b) { return (a.plan == nullptr) == (b.plan == nullptr); }},
    {"expandable_segments",
     [](const Options& a, const Options& b) { return a.expandable_segments == b.expandable_segments; }},
    {"large_segment_size_mb", SameLargeSegments},
    {"expandable_segments_reserve", SameReserve},
    {"throw_on_cudamalloc_oom",
     [](const Options& a, const Options& b) { return a.throw_on_cudamalloc_oom == b.throw_on_cudamalloc_oom; }},
    {"per_process_memory_fraction",
     [](const Options& a, const Options& b) { return a.per_process_memory_fraction == b.per_process_memory_fraction; }},
    {"memory_limit_mb",
     [](const Options& a, const Options& b) { return a.memory_limit_bytes == b.memory_limit_bytes; }},
    {"soft_limit_mb", [](const Options& a, const Options& b) { return a.soft_limit_bytes == b.soft_limit_bytes; }},
    {"soft_limit_fraction",
     [](const Options& a, const Options& b) { return a.soft_limit_fraction == b.soft_limit_fraction; }},
    {"report_leaks", [](const Options& a, const Options& b) { return a.report_leaks == b.report_leaks; }},
};

}  // namespace

absl::StatusOr<Options> ChangedSettings(const Options& now, absl::string_view conf) {
  const absl::StatusOr<Options> before = ParseConf(now.conf, now.compat, Keys::kAshlar);
  if (!before.ok()) return before.status();
  absl::StatusOr<Options> wanted = ParseConf(conf, now.compat, Keys::kAshlar);
  if (!wanted.ok()) return wanted.status();
  for (const FixedKey& key : kFixed) {
    if (key.is_same(*before, *wanted)) continue;
    return absl::InvalidArgumentError(absl::StrCat("'", key.name,
                                                   "' cannot change while the allocator runs: it was made with '",
                                                   now.conf, "', and '", conf, "' says otherwise"));
  }
  Options out = now;
  if (!out.expandable_segments) out.large_segment_bytes = wanted->large_segment_bytes;
  out.max_split_size_bytes = wanted->max_split_size_bytes;
  out.max_non_split_rounding_bytes = wanted->max_non_split_rounding_bytes;
  out.garbage_collection_threshold = wanted->garbage_collection_threshold;
  out.roundup_power2_divisions = wanted->roundup_power2_divisions;
  out.roundup_bypass_threshold_bytes = wanted->roundup_bypass_threshold_bytes;
  out.search_after_sync = wanted->search_after_sync;
  out.sync_just_enough = wanted->sync_just_enough;
  out.borrow_across_streams = wanted->borrow_across_streams;
  out.borrow_most_waits = wanted->borrow_most_waits;
  out.conf = std::move(wanted->conf);
  out.notes = std::move(wanted->notes);
  return out;
}

}  // namespace ashlar::policy
