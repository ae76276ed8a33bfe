// Ends the program with one line where a caller did something wrong that no call can answer with an error
// (docs/library/misuse.md).
//
//   CheckLive(block, "Free");
//
// The checks are a few instructions; all else is cold. Threads: any.
#ifndef ASHLAR_ALLOCATOR_CORE_MISUSE_H_
#define ASHLAR_ALLOCATOR_CORE_MISUSE_H_

#include <cstdint>

#include "allocator/policy/block.h"

namespace ashlar::core {

[[noreturn]] void StopAtDeadBlock(const policy::Block* block, const char* call);
[[noreturn]] void StopAtForeignBlock(const policy::Block* block, const char* call);
// What a call after the allocator's destructor ends in.
[[noreturn]] void StopAtGoneAllocator();

// As far as the block's record tells.
inline void CheckLive(const policy::Block* block, const char* call) {
  const bool may_be_record = reinterpret_cast<std::uintptr_t>(block) % alignof(policy::Block) == 0;
  if (!may_be_record || block->state != policy::BlockState::kLive) [[unlikely]]
    StopAtDeadBlock(block, call);
}

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_MISUSE_H_
