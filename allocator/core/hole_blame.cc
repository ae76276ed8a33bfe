#include "allocator/core/hole_blame.h"

namespace ashlar::core {
namespace {

__extension__ using Wide = unsigned __int128;

// The lower block's share of a hole between two blocks: inverse to the sizes, so in proportion to the other's.
std::uint64_t LowerShare(std::uint64_t hole_bytes, std::uint64_t lower_bytes, std::uint64_t upper_bytes) {
  const Wide both = Wide{lower_bytes} + upper_bytes;
  return both == 0 ? hole_bytes / 2 : static_cast<std::uint64_t>(Wide{hole_bytes} * upper_bytes / both);
}

}  // namespace

std::vector<std::uint64_t> BlameOfBlocks(std::uint64_t begin, std::uint64_t end, absl::Span<const Occupied> blocks) {
  std::vector<std::uint64_t> blame(blocks.size(), 0);
  if (blocks.empty()) return blame;
  blame.front() += blocks.front().address - begin;
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    const std::uint64_t hole = blocks[i].address - blocks[i - 1].End();
    const std::uint64_t lower = LowerShare(hole, blocks[i - 1].size_bytes, blocks[i].size_bytes);
    blame[i - 1] += lower;
    blame[i] += hole - lower;
  }
  blame.back() += end - blocks.back().End();
  return blame;
}

}  // namespace ashlar::core
