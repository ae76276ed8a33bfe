// What ends the program with one line: calls that have no error to answer with, given what is no block of theirs. All
// of it is cold.
#include "absl/strings/str_cat.h"
#include "allocator/base/check.h"
#include "allocator/core/caching_allocator.h"

namespace ashlar::core {
namespace {

std::string BlockName(const Block* block) {
  return absl::StrCat("block 0x", absl::Hex(reinterpret_cast<std::uintptr_t>(block)));
}

}  // namespace

void CachingAllocator::StopAtDeadBlock(const Block* block, const char* call) {
  StopAtMisuse(absl::StrCat(call, ": ", BlockName(block), " (", block->size_bytes, " bytes at 0x",
                            absl::Hex(block->address), ") is not live: it was freed before"));
}

}  // namespace ashlar::core
