// A rival: good fit in the shape of TLSF. Free blocks in doubly linked lists by size class (32 a doubling), a two-level
// bitmap, the newest block of the first class that surely fits; every remainder of 512 bytes is cut off, neighbours
// merge. The records lie beside the memory, as they must for a device, and a caller keeps its record, so that there is
// no lookup by address. One pool for all sizes, regions of 256 MiB and more, one spin lock, no statistics but the live
// bytes. It makes no promise about where a block lies: O(1), and a floor for what merges and splits.
//
//   RivalTlsf tlsf;
//   RivalTlsf::Block* block = tlsf.Allocate(300 * kMiB);
//   tlsf.Free(block);
//
// Thread-safe; streams are not told apart.
#ifndef ASHLAR_BENCH_RIVAL_TLSF_H_
#define ASHLAR_BENCH_RIVAL_TLSF_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "allocator/base/biased_lock.h"
#include "allocator/base/units.h"

namespace ashlar::bench {

class RivalTlsf {
 public:
  struct Block {
    std::uint64_t address = 0;
    std::uint64_t size_bytes = 0;
    Block* below = nullptr;  // neighbours in the region
    Block* above = nullptr;
    Block* older = nullptr;  // of its class, while it is free
    Block* newer = nullptr;
    bool is_free = false;
  };

  RivalTlsf() = default;
  RivalTlsf(const RivalTlsf&) = delete;
  RivalTlsf& operator=(const RivalTlsf&) = delete;

  // bytes > 0.
  Block* Allocate(std::uint64_t bytes);
  // `block` is live.
  void Free(Block* block);

  // Sum of the blocks' sizes.
  std::int64_t live_bytes() const { return live_bytes_; }
  static std::uint64_t BlockBytes(std::uint64_t bytes) { return RoundUp(bytes, 512); }

 private:
  static constexpr std::size_t kClasses = 64 * 32;

  static std::size_t ClassOf(std::uint64_t size_bytes);
  void Link(Block* block);
  void Unlink(Block* block);
  Block* TakeFirst(std::size_t from_class);
  Block* NewRegion(std::uint64_t size_bytes);
  Block* NewRecord();
  void Absorb(Block* low, Block* high);

  SpinLock lock_;
  std::array<Block*, kClasses> newest_{};
  std::array<std::uint64_t, kClasses / 64> words_{};
  std::uint64_t summary_ = 0;
  std::deque<Block> records_;
  Block* unused_ = nullptr;  // linked by `older`
  std::uint64_t next_region_ = 0x7f0000000000;
  std::int64_t live_bytes_ = 0;
};

}  // namespace ashlar::bench

#endif  // ASHLAR_BENCH_RIVAL_TLSF_H_
