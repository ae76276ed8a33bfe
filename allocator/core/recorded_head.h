// The head of a recording, which stands before its first event, and the recording of a state alone.
//
//   trace::Snapshot head = RecordedHeadOf(ledger.options(), limits, /*device=*/0);
//
// The settings are printed as PyTorch names and prints its own. Within the allocator's exclusive section.
#ifndef ASHLAR_ALLOCATOR_CORE_RECORDED_HEAD_H_
#define ASHLAR_ALLOCATOR_CORE_RECORDED_HEAD_H_

#include "allocator/core/ledger.h"
#include "allocator/core/limits.h"
#include "allocator/policy/options.h"
#include "allocator/trace/snapshot.h"

namespace ashlar::core {

trace::Snapshot RecordedHeadOf(const policy::Options& options, const Limits& limits, int device);
// As device 0: the segments and reservations, with what the ledger's sink knows of the blocks.
trace::Snapshot RecordedStateOf(const Ledger& ledger, const Limits& limits);

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_RECORDED_HEAD_H_
