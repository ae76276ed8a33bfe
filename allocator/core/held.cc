// Whose the device's memory in use is, as far as the allocator knows.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/core/state.h"

namespace ashlar::core {
namespace {

const char* WhyAwake(policy::Heap::UsedElsewhere use) {
  switch (use) {
    case policy::Heap::UsedElsewhere::kNothing:
      return "";
    case policy::Heap::UsedElsewhere::kRegistered:
      return ", which a registered range keeps awake";
    case policy::Heap::UsedElsewhere::kShared:
      return ", which a block that another process has keeps awake";
  }
  return "";
}

}  // namespace

std::vector<HeldPart> CachingAllocator::Held() const {
  std::vector<HeldPart> out;
  const auto add = [&out](std::string owner, std::uint64_t bytes) {
    if (bytes > 0) out.push_back({std::move(owner), bytes});
  };
  const ExclusiveSection section(caches());
  const policy::Heap& heap = ledger_.heap();
  const auto add_pair = [&](const policy::PoolPair& pair) {
    if (pair.is_asleep) return;
    add(absl::StrCat(Pools::NameOf(pair), WhyAwake(heap.UseElsewhere(pair))),
        heap.MappedBytes(pair.small) + heap.MappedBytes(pair.large));
  };
  add_pair(heap.default_pair());
  for (const auto& [id, pair] : heap.private_pairs()) add_pair(*pair);
  const device::MemoryInfo info = device_->GetMemoryInfo();
  const std::uint64_t used = info.total_bytes - std::min(info.total_bytes, info.free_bytes);
  add("outside this allocator: the CUDA context, libraries, other processes",
      used - std::min(used, heap.reserved_bytes()));
  std::stable_sort(out.begin(), out.end(), [](const HeldPart& a, const HeldPart& b) { return a.bytes > b.bytes; });
  return out;
}

}  // namespace ashlar::core
