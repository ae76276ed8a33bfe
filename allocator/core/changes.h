// The changes of one served request in the statistics, as an array that can be added up. Blocks that wait for events
// are freed on the slow path; so here what is allocated is active.
//
//   Changes changes{};
//   changes[kBlocks] += 1;
//
// Units: counts and bytes as the names say. Plain values.
#ifndef ASHLAR_ALLOCATOR_CORE_CHANGES_H_
#define ASHLAR_ALLOCATOR_CORE_CHANGES_H_

#include <array>
#include <cstdint>

namespace ashlar::core {

enum ChangeOf : std::uint8_t { kBlocks, kBlockBytes, kRequestedBytes, kSplitBlocks, kSplitBytes };
inline constexpr int kChangesOf = 5;
using Changes = std::array<std::int64_t, kChangesOf>;

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_CHANGES_H_
