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
#ifndef ASHLAR_ALLOCATOR_CORE_HOLE_BLAME_H_
#define ASHLAR_ALLOCATOR_CORE_HOLE_BLAME_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace ashlar::core {

// A live or pending block.
struct Occupied {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;

  std::uint64_t End() const { return address + size_bytes; }
};

// The blame in bytes of each of the blocks in use of a segment [begin, end), which are in address order; none: empty.
std::vector<std::uint64_t> BlameOfBlocks(std::uint64_t begin, std::uint64_t end, absl::Span<const Occupied> blocks);

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_HOLE_BLAME_H_
