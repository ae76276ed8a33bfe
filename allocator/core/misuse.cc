// What a caller got wrong and no call can answer with an error: one line, and mostly the end of the program. All of it
// is cold.
#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "allocator/base/check.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/core/world.h"
#include "allocator/device/fork_count.h"

namespace ashlar::core {
namespace {

std::string BlockName(const Block* block) {
  return absl::StrCat("block 0x", absl::Hex(reinterpret_cast<std::uintptr_t>(block)));
}

}  // namespace

void CachingAllocator::StopAtDeadBlock(const Block* block, const char* call) {
  const std::string name = absl::StrCat(call, ": ", BlockName(block));
  if (reinterpret_cast<std::uintptr_t>(block) % alignof(Block) != 0) {
    StopAtMisuse(absl::StrCat(name, " is no block: no allocator gave this pointer"));
  }
  StopAtMisuse(absl::StrCat(name, " (", block->size_bytes, " bytes at 0x", absl::Hex(block->address),
                            ") is not live: it was freed before, or no allocator gave this pointer"));
}

void CachingAllocator::StopAtForeignBlock(const Block* block, const char* call) {
  StopAtMisuse(absl::StrCat(call, ": ", BlockName(block), " (", block->size_bytes, " bytes at 0x",
                            absl::Hex(block->address), ") is another allocator's: give it to the one it came from"));
}

void CachingAllocator::StopAtGoneAllocator() {
  StopAtMisuse("Allocator: called after its destructor: free every block before the allocator ends");
}

// A forked child's copy is not the child's to tell of, and memory of a lost device is gone.
void CachingAllocator::TellLiveBlocks() const {
  if (!options().report_leaks || fork_count_ != device::ForkCount()) return;
  const World world(*this);
  const std::int64_t blocks = stats_.allocation.all().current;
  if (blocks == 0 || !lost_.ok() || !reports_failures_) return;
  const auto bytes = static_cast<std::uint64_t>(stats_.allocated_bytes.all().current);
  std::fprintf(stderr,
               "ashlar: an allocator ended with %lld live block%s, %s, not freed; report_leaks:False hides this\n",
               static_cast<long long>(blocks), blocks == 1 ? "" : "s", FormatBytes(bytes).c_str());
}

}  // namespace ashlar::core
