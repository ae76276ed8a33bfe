#include "allocator/core/misuse.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "allocator/base/check.h"

namespace ashlar::core {
namespace {

std::string BlockName(const policy::Block* block) {
  return absl::StrCat("block 0x", absl::Hex(reinterpret_cast<std::uintptr_t>(block)));
}

}  // namespace

void StopAtDeadBlock(const policy::Block* block, const char* call) {
  const std::string name = absl::StrCat(call, ": ", BlockName(block));
  if (reinterpret_cast<std::uintptr_t>(block) % alignof(policy::Block) != 0) {
    StopAtMisuse(absl::StrCat(name, " is no block: no allocator gave this pointer"));
  }
  StopAtMisuse(absl::StrCat(name, " (", block->size_bytes, " bytes at 0x", absl::Hex(block->address),
                            ") is not live: it was freed before, or no allocator gave this pointer"));
}

void StopAtForeignBlock(const policy::Block* block, const char* call) {
  StopAtMisuse(absl::StrCat(call, ": ", BlockName(block), " (", block->size_bytes, " bytes at 0x",
                            absl::Hex(block->address), ") is another allocator's: give it to the one it came from"));
}

void StopAtGoneAllocator() {
  StopAtMisuse("Allocator: called after its destructor: free every block before the allocator ends");
}

}  // namespace ashlar::core
