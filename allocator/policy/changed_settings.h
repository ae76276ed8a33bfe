// Which settings a running allocator may take. They may differ from those it has in what decides about requests to come
// alone: how these are rounded, which blocks are split and which may serve, what is tried before a request fails. What
// shapes memory that is there already (expandable_segments, policy, free_order, ...) was chosen when the allocator was
// made; limits have calls of their own.
//
//   absl::StatusOr<Options> changed = ChangedSettings(heap.options(), "max_split_size_mb:128");
//
// Pure. Errors are kInvalidArgument: a bad key or value, or the first key that cannot change.
#ifndef ASHLAR_ALLOCATOR_POLICY_CHANGED_SETTINGS_H_
#define ASHLAR_ALLOCATOR_POLICY_CHANGED_SETTINGS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/policy/options.h"

namespace ashlar::policy {

// `conf` is the whole text, as if the allocator had been made with it: a key that it does not name has its default. It
// is read by the rules of `now.compat`, and compared with the text in `now`, not with what a program set beside it.
absl::StatusOr<Options> ChangedSettings(const Options& now, absl::string_view conf);

}  // namespace ashlar::policy

#endif  // ASHLAR_ALLOCATOR_POLICY_CHANGED_SETTINGS_H_
