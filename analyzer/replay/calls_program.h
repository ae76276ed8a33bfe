// Turns the calls of a program that has no allocator into requests: an allocation and a free for each of its own, in
// their order. A cold replay then says what an allocator would have made of them.
#ifndef ASHLAR_ANALYZER_REPLAY_CALLS_PROGRAM_H_
#define ASHLAR_ANALYZER_REPLAY_CALLS_PROGRAM_H_

#include "allocator/trace/snapshot.h"
#include "analyzer/replay/snapshot_program.h"
#include "analyzer/timeline/block_size_rule.h"

namespace ashlar::replay {

// Of a snapshot for which trace::RecordsDeviceCalls holds.
SnapshotProgram MakeCallsProgram(const trace::Snapshot& snapshot, int device);

// A block is as big as what was asked for, and a segment as its block.
timeline::BlockSizeRule CallsSizeRule();

}  // namespace ashlar::replay

#endif  // ASHLAR_ANALYZER_REPLAY_CALLS_PROGRAM_H_
