// Computes how big a block a request got, by where it was placed: all that a timeline must know of an allocation
// policy.
//
// The policy itself lives on another floor; the caller hands in its size rounding and its split limits. All sizes are
// bytes. Immutable once filled; safe to share between threads as far as `rounded_bytes` is.
//
//   BlockSizeRule rule;
//   rule.rounded_bytes = [](std::uint64_t requested) { return RoundUp(std::max<std::uint64_t>(requested, 512), 512); };
//   BlockBytes(rule, SegmentKind{.is_small_pool = false, .is_expandable = false}, 3 * kMiB, 4 * kMiB);  // 4 MiB: a
//                                                                        // rest of 1 MiB is not split off
#ifndef ASHLAR_ANALYZER_TIMELINE_BLOCK_SIZE_RULE_H_
#define ASHLAR_ANALYZER_TIMELINE_BLOCK_SIZE_RULE_H_

#include <cstdint>
#include <functional>
#include <limits>

#include "allocator/base/torch_sizes.h"
#include "allocator/base/units.h"

namespace ashlar::timeline {

struct BlockSizeRule {
  std::function<std::uint64_t(std::uint64_t requested_bytes)> rounded_bytes;
  std::uint64_t small_max_bytes = kSmallMaxBytes;  // rounded sizes up to this come from the small pool
  std::uint64_t max_tail_bytes = kSmallMaxBytes;   // large pool: a rest up to this stays with the block
  std::uint64_t max_split_size_bytes = std::numeric_limits<std::uint64_t>::max();
  bool expandable_option = false;
  std::uint64_t large_page_bytes = kDefaultLargeSegmentBytes;  // mapped ranges of the large pool are multiples of this
};

// What of a segment decides how its blocks are cut.
struct SegmentKind {
  bool is_small_pool = false;
  bool is_expandable = false;
};

// The largest rest that may have stayed unsplit behind `rounded_bytes`; the maximum value for a block that is never
// split off, whatever its rest.
std::uint64_t MaxTailBytes(const BlockSizeRule& rule, SegmentKind kind, std::uint64_t rounded_bytes);

// The size of the block made for `rounded_bytes` at the low end of `gap_bytes` free bytes; rounded_bytes <= gap_bytes.
std::uint64_t BlockBytes(const BlockSizeRule& rule, SegmentKind kind, std::uint64_t rounded_bytes,
                         std::uint64_t gap_bytes);

}  // namespace ashlar::timeline

#endif  // ASHLAR_ANALYZER_TIMELINE_BLOCK_SIZE_RULE_H_
