// A snapshot is the state of an allocator at one moment: its segments, cut into blocks.
//
//   segment  [address .................... address + size_bytes)
//            | live 512 | free 1536 | live ... | pending ... |      blocks tile the segment, in address order
//
//   for (const ashlar::SegmentInfo& segment : allocator.Segments()) ...
//
// Allocator::DumpSnapshot writes the same into a file, for `ashlar explain`. Plain values; sizes are bytes.
#ifndef ASHLAR_SNAPSHOT_H_
#define ASHLAR_SNAPSHOT_H_

#include <cstdint>
#include <vector>

#include "ashlar/units.h"

namespace ashlar {

// A page of an expandable segment that other processes of the machine may map.
struct SharedPage {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  int file = -1;  // a descriptor, which is closed when the page is unmapped
};

enum class BlockState : std::uint8_t {
  kFree,
  kLive,
  kPending,  // freed by the program, still waiting for work on another stream
};

struct BlockInfo {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t requested_bytes = 0;  // what the caller asked for; 0 for a free block
  BlockState state = BlockState::kFree;
};

// A live block, and the memory of the device around it.
struct BlockPlace {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t requested_bytes = 0;
  // The segment; of an expandable one the run of pages without a gap that holds the block.
  std::uint64_t segment_address = 0;
  std::uint64_t segment_bytes = 0;
};

struct SegmentInfo {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  Stream stream{};
  PoolId pool;
  bool is_small_pool = false;
  bool is_expandable = false;
  std::vector<BlockInfo> blocks;
};

}  // namespace ashlar

#endif  // ASHLAR_SNAPSHOT_H_
