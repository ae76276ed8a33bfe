#include "allocator/policy/torch_rules.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace ashlar::policy {
namespace {

constexpr TorchRules kRules[] = {
    {.compat = Compat::kTorch113,
     .name = "torch-1.13",
     .since = {0, 0},
     .has_expandable_segments = false,
     .has_division_lists = false,
     .rounds_after_one_division = false},
    {.compat = Compat::kTorch26,
     .name = "torch-2.6",
     .since = {2, 0},
     .keeps_short_reservations = true,
     .shown_by = SnapshotPart::kHistory},
    {.compat = Compat::kTorch210,
     .name = "torch-2.10",
     .since = {2, 10},
     .shown_by_settings = {"large_segment_size", "throw_on_cudamalloc_oom", "per_process_memory_fraction",
                           "graph_capture_record_stream_reuse"}},
    {.compat = Compat::kTorch212,
     .name = "torch-2.12",
     .since = {2, 12},
     .free_order = FreeOrder::kPerBlockCounter,
     .shown_by = SnapshotPart::kPoolIds},
    // The host's part came with 2.14, the limits of the cache with 2.13.
    {.compat = Compat::kTorchLatest,
     .name = "torch-latest",
     .since = {2, 13},
     .free_order = FreeOrder::kPerSegmentCounter,
     .shown_by = SnapshotPart::kHost,
     .shown_by_settings = {"max_cached_size", "max_round_threshold"}},
};

// c10/xpu/XPUCachingAllocator.cpp: the rules of 2.10 without limits, divisions and collection. Equal free blocks lie in
// the order of their addresses.
constexpr TorchRules kXpuRules = {
    .compat = Compat::kTorchXpu, .name = "torch-xpu", .since = {2, 10}, .has_division_lists = false, .is_xpu = true};

// Of "2.14".
std::optional<Release> ReleaseOf(absl::string_view text) {
  const std::size_t dot = text.find('.');
  Release out;
  if (dot == absl::string_view::npos || !absl::SimpleAtoi(text.substr(0, dot), &out.first) ||
      !absl::SimpleAtoi(text.substr(dot + 1), &out.second) || out.first < 1) {
    return std::nullopt;
  }
  return out;
}

}  // namespace

absl::Span<const TorchRules> AllTorchRules() { return kRules; }

const TorchRules& RulesOf(Compat compat) {
  if (compat == Compat::kTorchXpu) return kXpuRules;
  return *std::find_if(std::begin(kRules), std::end(kRules) - 1,
                       [&](const TorchRules& r) { return r.compat == compat; });
}

const TorchRules& RulesOfRelease(Release release) {
  const TorchRules* out = kRules;
  for (const TorchRules& rules : kRules) {
    if (rules.since <= release) out = &rules;
  }
  return *out;
}

absl::string_view CompatName(Compat compat) { return RulesOf(compat).name; }

absl::StatusOr<Compat> ParseCompat(absl::string_view name) {
  std::string known;
  for (const TorchRules& rules : kRules) {
    if (rules.name == name) return rules.compat;
    absl::StrAppend(&known, rules.name, ", ");
  }
  if (name == kXpuRules.name) return kXpuRules.compat;
  absl::string_view number = name;
  const std::optional<Release> release = absl::ConsumePrefix(&number, "torch-") ? ReleaseOf(number) : std::nullopt;
  if (release.has_value() && *release <= kNewestRelease) return RulesOfRelease(*release).compat;
  return absl::InvalidArgumentError(absl::StrCat("'", name, "' is no version: use one of ", known, kXpuRules.name,
                                                 ", or a release up to torch-", kNewestRelease.first, ".",
                                                 kNewestRelease.second));
}

}  // namespace ashlar::policy
