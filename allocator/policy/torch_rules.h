// The rules of PyTorch's releases: one row each time that its allocator began to decide otherwise. What an allocator of
// that release does, and what shows it in a snapshot, is the row's; other code asks the row and names no release.
//
//   RulesOf(Compat::kTorch212).free_order               // FreeOrder::kPerBlockCounter
//   RulesOfRelease({2, 14}).compat                      // Compat::kTorchLatest: the rules of 2.13
//
// A release with rules of its own is a new row (CONTRIBUTING.md has the whole recipe). Keys of settings say their first
// release in options.cc.
#ifndef ASHLAR_ALLOCATOR_POLICY_TORCH_RULES_H_
#define ASHLAR_ALLOCATOR_POLICY_TORCH_RULES_H_

#include <array>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ashlar/options.h"

namespace ashlar::policy {

using ashlar::Compat;
using ashlar::FreeOrder;

// Major and minor number.
using Release = std::pair<int, int>;

// The newest that was looked at; later ones are taken as it.
inline constexpr Release kNewestRelease = {2, 15};

// A part of a snapshot that a release began to write.
enum class SnapshotPart : std::uint8_t {
  kNone,
  kHistory,  // settings, entries, or requested sizes
  kPoolIds,  // of entries
  kHost,     // the host's segments
};

struct TorchRules {
  Compat compat;
  absl::string_view name;  // as `compat` in settings, and in answers
  Release since;           // up to the next row's
  FreeOrder free_order = FreeOrder::kAddress;
  bool has_expandable_segments = true;
  bool has_division_lists = true;         // roundup_power2_divisions by size
  bool rounds_after_one_division = true;  // 1.13 does not: an upstream defect that is kept
  bool keeps_short_reservations = false;  // an expandable segment smaller than its first request stays
  bool is_xpu = false;                    // of Intel's GPUs: expandable_segments is its only setting
  // What only files of these rules and later ones have. A setting: its key in `allocator_settings`.
  SnapshotPart shown_by = SnapshotPart::kNone;
  std::array<absl::string_view, 4> shown_by_settings = {};
};

// Those for CUDA and HIP, oldest first. Each Compat but kTorchXpu has one there.
absl::Span<const TorchRules> AllTorchRules();
const TorchRules& RulesOf(Compat compat);
const TorchRules& RulesOfRelease(Release release);

// "torch-2.12" and the other names of rows. ParseCompat also reads the name of a release, as "torch-2.14".
absl::string_view CompatName(Compat compat);
absl::StatusOr<Compat> ParseCompat(absl::string_view name);

// 2.10 and later: has the newer keys, takes a memory fraction of 1 as no limit.
constexpr bool IsLate(Compat compat) { return compat >= Compat::kTorch210; }

}  // namespace ashlar::policy

#endif  // ASHLAR_ALLOCATOR_POLICY_TORCH_RULES_H_
