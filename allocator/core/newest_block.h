// The block that a desk allocated last, while no lane of the desk has changed since: its free can be put off. Best fit
// is a function of a lane's state, and that free leads back to the state before the allocation. So the same request
// from there gets the same block, and neither need cut, join or count anything:
//
//   allocate 4 KiB -> A     free A: put off     allocate 4 KiB -> A again
//   anything else first makes the free real, and counts how often this was repeated (Desk::Settle)
//
// Not where each new block has a rank of its own, which a second allocation would not get again. Thread rule: the lock
// of its desk, or the exclusive section.
#ifndef ASHLAR_ALLOCATOR_CORE_NEWEST_BLOCK_H_
#define ASHLAR_ALLOCATOR_CORE_NEWEST_BLOCK_H_

#include <cstddef>
#include <cstdint>

#include "allocator/policy/block.h"

namespace ashlar::core {

struct Arena;

class NewestBlock {
 public:
  // `is_named`: handed out by its address, which the desk's map has. Nothing is put off or repeated.
  void Set(policy::Block* block, Arena* arena, std::uint64_t rounded_bytes, bool is_named) {
    block_ = block;
    arena_ = arena;
    rounded_bytes_ = rounded_bytes;
    is_named_ = is_named;
  }
  void Forget() { block_ = nullptr; }
  // What was put off is real, and the repeats are counted.
  void Settled() {
    block_ = nullptr;
    is_put_off_ = false;
    repeats_ = 0;
  }

  policy::Block* block() const { return block_; }  // nullptr: none is known
  Arena* arena() const { return arena_; }
  bool is_named() const { return is_named_; }
  bool is_put_off() const { return is_put_off_; }
  // How often it was freed and allocated again, which no sum tells yet but for the bytes asked for.
  std::int64_t repeats() const { return repeats_; }
  std::size_t slot() const { return slot_; }
  bool IsSettled() const { return (repeats_ | std::int64_t{is_put_off_}) == 0; }

  // Whether this free can be put off: of the newest block, by what it was handed out as.
  bool MayPutOff(const policy::Block* block, bool is_named) const {
    return block == block_ && !is_put_off_ && is_named == is_named_ && !block->has_recorded_streams;
  }
  // `slot`: where the map has its address, which stays there.
  void PutOff(std::size_t slot) {
    is_put_off_ = true;
    slot_ = slot;
    block_->state = policy::BlockState::kFree;
  }
  // Whether this request would get the block again; the arena must be the same too.
  bool IsFor(std::uint64_t rounded_bytes, bool is_named) const {
    return is_put_off_ && rounded_bytes == rounded_bytes_ && is_named == is_named_;
  }
  void TakeBack(std::uint64_t request_bytes) {
    is_put_off_ = false;
    ++repeats_;
    block_->state = policy::BlockState::kLive;
    block_->requested_bytes = request_bytes;
  }

 private:
  policy::Block* block_ = nullptr;
  Arena* arena_ = nullptr;
  std::uint64_t rounded_bytes_ = 0;
  std::size_t slot_ = 0;
  std::int64_t repeats_ = 0;
  bool is_named_ = false;
  bool is_put_off_ = false;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_NEWEST_BLOCK_H_
