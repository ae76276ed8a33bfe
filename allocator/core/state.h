// A heap's state as values: what snapshots, recordings and reports are made of.
//
//   std::vector<trace::SnapshotSegment> segments = SegmentsOf(heap);
//
// Pure functions; O(blocks). Sizes are bytes. Nothing may change the heap meanwhile.
#ifndef ASHLAR_ALLOCATOR_CORE_STATE_H_
#define ASHLAR_ALLOCATOR_CORE_STATE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "allocator/core/ledger.h"
#include "allocator/core/limits.h"
#include "allocator/policy/heap.h"
#include "allocator/policy/options.h"
#include "allocator/trace/snapshot.h"
#include "ashlar/snapshot.h"

namespace ashlar::core {

// By address. An expandable segment is as many as it has mapped ranges.
std::vector<trace::SnapshotSegment> SegmentsOf(const policy::Heap& heap);
// Those with pages behind them: of pools that are not asleep.
std::vector<trace::SnapshotSegment> AwakeSegmentsOf(const policy::Heap& heap);
// The segment, for expandable ones the reservation, that holds this address; nullptr where there is none.
const policy::Segment* SegmentAt(const policy::Heap& heap, std::uint64_t address);
// The live block that holds this address; nothing where there is none. O(log segments + blocks of one segment).
std::optional<BlockPlace> PlaceOf(const policy::Heap& heap, std::uint64_t address);
// The page under this address of a live block in an expandable segment that is awake, and the block; nothing where
// there is none.
struct PageOfBlock {
  policy::AddressRange page;
  policy::Block* block = nullptr;
};
std::optional<PageOfBlock> PageOf(const policy::Heap& heap, std::uint64_t address);
// Oldest first.
std::vector<trace::ReservedRange> ReservationsOf(const policy::Heap& heap);
// Of expandable segments, by address.
std::vector<trace::LargePage> LargePagesOf(const policy::Heap& heap);
// Whether garbage collection is on, or was: free segments have ages then.
bool HasAges(const policy::Heap& heap);
// What a recording begins in: the segments, oldest first, with the ages that garbage collection goes by.
trace::RecordedStart StartOf(const policy::Heap& heap);

// The head of a recording, which stands before its first event, and the recording of a state alone.
//
//   trace::Snapshot head = RecordedHeadOf(ledger.options(), limits, /*device=*/0);
//
// The settings are printed as PyTorch names and prints its own. Within the allocator's exclusive section.

trace::Snapshot RecordedHeadOf(const policy::Options& options, const Limits& limits, int device);
// As device 0: these segments of the ledger's heap, and its reservations, with what the ledger's sink knows of the
// blocks.
trace::Snapshot RecordedStateOf(const Ledger& ledger, const Limits& limits,
                                std::vector<trace::SnapshotSegment> segments);

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_STATE_H_
