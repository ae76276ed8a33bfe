// The settings of the allocation policy (ashlar/options.h): their texts, names and constants.
//
//   absl::StatusOr<Options> options = ParseConf("max_split_size_mb:128,garbage_collection_threshold:0.8",
//                                               Compat::kTorch210);
//
// Errors name the key, the value and the allowed range. Which keys exist depends on the version.
#ifndef ASHLAR_ALLOCATOR_POLICY_OPTIONS_H_
#define ASHLAR_ALLOCATOR_POLICY_OPTIONS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/base/torch_sizes.h"
#include "allocator/base/units.h"
#include "allocator/policy/torch_rules.h"  // IWYU pragma: export
#include "ashlar/options.h"                // IWYU pragma: export

namespace ashlar::policy {

using ashlar::ExpandableReserve;
using ashlar::kDefaultLargeSegmentBytes;
using ashlar::Keys;
using ashlar::kMinBlockBytes;
using ashlar::kMinLargeBytes;
using ashlar::kRoundLargeBytes;
using ashlar::kSmallMaxBytes;
using ashlar::kSmallSegmentBytes;
using ashlar::kUnlimited;
using ashlar::Options;
using ashlar::Policy;

// Other settings for a run whose order is known: that order, unless they bring a policy with an order of its own.
void KeepFreeOrder(const Options& of_run, Options& options);

absl::StatusOr<Options> ParseConf(absl::string_view conf, Compat compat, Keys keys = Keys::kTorch);

// The text of a record, keys of ours among it: the run is over, so it is never refused. What this version does not know
// or cannot read is left out, also of `conf`, and `notes` name it.
Options ReadRecordedConf(absl::string_view conf, Compat compat);

// Every key that some version knows, ours last.
struct KeyInfo {
  absl::string_view name;
  bool is_ours = false;
  bool has_effect = true;  // false: accepted, and changes no decision
};
std::vector<KeyInfo> AllKeys();

// "address", "per-block-counter", "per-segment-counter".
absl::string_view FreeOrderName(FreeOrder order);
absl::StatusOr<FreeOrder> ParseFreeOrder(absl::string_view name);

// Which settings a running allocator may take. They may differ from those it has in what decides about requests to come
// alone: how these are rounded, which blocks are split and which may serve, what is tried before a request fails. What
// shapes memory that is there already (expandable_segments, policy, free_order, ...) was chosen when the allocator was
// made; limits have calls of their own.
//
//   absl::StatusOr<Options> changed = ChangedSettings(heap.options(), "max_split_size_mb:128");
//
// Pure. Errors are kInvalidArgument: a bad key or value, or the first key that cannot change.

// `conf` is the whole text, as if the allocator had been made with it: a key that it does not name has its default. It
// is read by the rules of `now.compat`, and compared with the text in `now`, not with what a program set beside it.
absl::StatusOr<Options> ChangedSettings(const Options& now, absl::string_view conf);

}  // namespace ashlar::policy

#endif  // ASHLAR_ALLOCATOR_POLICY_OPTIONS_H_
