// The accounting says where the bytes of a state are. The parts are summed separately from the blocks, and
//
//   reserved = live + rounding + pending + stranded + whole_free + private_pool        exactly
//
//   live          what the callers of the live blocks asked for
//   rounding      their blocks' sizes minus that
//   pending       freed by the program, waiting for work on another stream
//   stranded      free bytes in segments that still hold a live or pending block
//   whole_free    segments without one: the cache can return them
//   private_pool  free bytes (of both kinds) in private pools
//
// Where a live block's request is unknown, live and rounding are nullopt and only their sum (allocated) is known.
// All values are bytes.
#ifndef ASHLAR_ALLOCATOR_CORE_ACCOUNTING_H_
#define ASHLAR_ALLOCATOR_CORE_ACCOUNTING_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "allocator/base/units.h"
#include "allocator/trace/snapshot.h"

namespace ashlar::core {

// One block as the accounting sees it.
struct AccountedBlock {
  std::uint64_t size_bytes = 0;
  std::optional<std::uint64_t> requested_bytes;
  trace::BlockState state = trace::BlockState::kLive;
};

struct Accounting {
  std::uint64_t reserved_bytes = 0;
  std::uint64_t allocated_bytes = 0;  // live + rounding
  std::optional<std::uint64_t> live_bytes = 0;
  std::optional<std::uint64_t> rounding_bytes = 0;
  std::uint64_t pending_bytes = 0;
  std::uint64_t stranded_bytes = 0;
  std::uint64_t whole_free_bytes = 0;
  std::uint64_t private_pool_bytes = 0;
  std::uint64_t segment_count = 0;
  std::uint64_t stranded_segment_count = 0;
  std::uint64_t pinning_block_count = 0;  // live and pending blocks in those

  // The sum of the parts; equals reserved_bytes for every state.
  std::uint64_t SumOfParts() const {
    return allocated_bytes + pending_bytes + stranded_bytes + whole_free_bytes + private_pool_bytes;
  }
};

// Adds one segment's bytes. `occupied` are its live and pending blocks; the rest of the segment is free.
class AccountingSum {
 public:
  void AddSegment(std::uint64_t size_bytes, PoolId pool, absl::Span<const AccountedBlock> occupied);
  const Accounting& result() const { return result_; }

 private:
  void AddBlock(const AccountedBlock& block);
  Accounting result_;
};

Accounting Account(absl::Span<const trace::SnapshotSegment> segments);

// Finds the blocks that keep the free bytes of a segment from being used or returned. Each free byte of a segment in
// use is charged to blocks of that segment, so the charges sum to its free bytes exactly.
//
//   segment | live 2 MiB |        free 18 MiB        |               18 MiB are to blame on that block
//
//   segment | A 2 MiB |   free 12 MiB   | B 6 MiB |                  9 MiB on A, 3 MiB on B
//
// The rule: a hole belongs to the blocks that bound it, at most two, for only their release makes it grow; between two
// it is shared inversely to their sizes, for the smaller one holds it for less use. A hole at the edge of its segment
// belongs to the one block that bounds it. Shares are whole bytes: the lower block's is rounded down, the upper one
// gets the rest. A block between two others bounds no hole and gets no blame.

// A live or pending block.
struct Occupied {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;

  std::uint64_t End() const { return address + size_bytes; }
};

// The blame in bytes of each of the blocks in use of a segment [begin, end), which are in address order; none: empty.
std::vector<std::uint64_t> BlameOfBlocks(std::uint64_t begin, std::uint64_t end, absl::Span<const Occupied> blocks);

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_ACCOUNTING_H_
