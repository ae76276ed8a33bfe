// Turns what a snapshot says of its allocator into the policy's settings.
#ifndef ASHLAR_ANALYZER_REPLAY_RECORDED_OPTIONS_H_
#define ASHLAR_ANALYZER_REPLAY_RECORDED_OPTIONS_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "allocator/device/address_space.h"
#include "allocator/policy/options.h"
#include "allocator/policy/torch_rules.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/timeline/block_size_rule.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::replay {

// The newest of these rules that a field of the snapshot shows; the oldest where none does.
const policy::TorchRules& RulesShownBy(const trace::Snapshot& snapshot, absl::Span<const policy::TorchRules> rules);

// The version whose rules the snapshot has: a recording of our own says it, a setting of ours may, else its fields show
// it. Releases that write the same fields (2.14 and 2.15) are one.
policy::Compat GuessCompat(const trace::Snapshot& snapshot);

// The recorded settings under `compat`; the defaults where the snapshot has none. Values win over the recorded conf
// string, as a program can change them after start. A setting that this version does not know or cannot read is left
// out and noted: no text makes a snapshot unreadable.
absl::StatusOr<policy::Options> RecordedOptions(const trace::Snapshot& snapshot, policy::Compat compat);

// Whether this is the version that a recording of our own says it ran as.
bool IsRecordedCompat(const trace::Snapshot& snapshot, policy::Compat compat);

// What the timeline must know of the policy.
timeline::BlockSizeRule SizeRuleOf(const policy::Options& options);

// Where the recorded device put segments, told by their addresses: a replay from an empty allocator puts them as it
// did, since of equal free blocks the versions before 2.13 take the lowest.

// As NVIDIA's driver (driver_addresses.h) where its rule gives nine of ten ordinary segments, seen from the first; else
// ascending or descending where nine of ten lie where first fit from that end puts them beside those that there were;
// else the driver's too, since others allocate beside the program. Ascending where no segment tells. Of long traces the
// first thousand segments tell.
device::AddressOrder RecordedAddressOrder(absl::Span<const timeline::SegmentSpan> segments);

}  // namespace ashlar::replay

#endif  // ASHLAR_ANALYZER_REPLAY_RECORDED_OPTIONS_H_
