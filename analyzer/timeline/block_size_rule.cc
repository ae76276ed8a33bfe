#include "analyzer/timeline/block_size_rule.h"

#include "allocator/base/check.h"

namespace ashlar::timeline {

std::uint64_t MaxTailBytes(const BlockSizeRule& rule, SegmentKind kind, std::uint64_t rounded_bytes) {
  // An expandable segment is only used while the option is on, so its blocks follow the option's rule.
  if (kind.is_small_pool || kind.is_expandable || rule.expandable_option) return kMinBlockBytes - 1;
  if (rounded_bytes >= rule.max_split_size_bytes) return std::numeric_limits<std::uint64_t>::max();
  return rule.max_tail_bytes;
}

std::uint64_t BlockBytes(const BlockSizeRule& rule, SegmentKind kind, std::uint64_t rounded_bytes,
                         std::uint64_t gap_bytes) {
  ASHLAR_CHECK_LE(rounded_bytes, gap_bytes);
  const bool is_split = gap_bytes - rounded_bytes > MaxTailBytes(rule, kind, rounded_bytes);
  return is_split ? rounded_bytes : gap_bytes;
}

}  // namespace ashlar::timeline
