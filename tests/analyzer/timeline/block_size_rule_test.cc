#include "analyzer/timeline/block_size_rule.h"

#include "gtest/gtest.h"
#include "tests/analyzer/timeline/story.h"

namespace ashlar::timeline {
namespace {

constexpr SegmentKind kSmallPool{.is_small_pool = true, .is_expandable = false};
constexpr SegmentKind kLargePool{.is_small_pool = false, .is_expandable = false};
constexpr SegmentKind kGrowing{.is_small_pool = false, .is_expandable = true};

TEST(BlockSizeRuleTest, TheSmallPoolSplitsOffEveryRest) {
  EXPECT_EQ(BlockBytes(TorchRule(), kSmallPool, 512, 1024), 512u);
  EXPECT_EQ(BlockBytes(TorchRule(), kSmallPool, 512, 512), 512u);
}

TEST(BlockSizeRuleTest, TheLargePoolKeepsARestUpToOneMebibyte) {
  EXPECT_EQ(BlockBytes(TorchRule(), kLargePool, 2 * kMiB, 3 * kMiB), 3 * kMiB);
  EXPECT_EQ(BlockBytes(TorchRule(), kLargePool, 2 * kMiB, 3 * kMiB + 512), 2 * kMiB);
}

TEST(BlockSizeRuleTest, ExpandableSegmentsAndTheOptionSplitOffEveryRest) {
  EXPECT_EQ(BlockBytes(TorchRule(), kGrowing, 2 * kMiB, 2 * kMiB + 512), 2 * kMiB);
  BlockSizeRule rule = TorchRule();
  rule.expandable_option = true;
  EXPECT_EQ(BlockBytes(rule, kLargePool, 2 * kMiB, 2 * kMiB + 512), 2 * kMiB);
}

TEST(BlockSizeRuleTest, FromMaxSplitOnBlocksAreNeverSplit) {
  BlockSizeRule rule = TorchRule();
  rule.max_split_size_bytes = 20 * kMiB;
  EXPECT_EQ(BlockBytes(rule, kLargePool, 20 * kMiB, 40 * kMiB), 40 * kMiB);
  EXPECT_EQ(BlockBytes(rule, kLargePool, 20 * kMiB - 512, 40 * kMiB), 20 * kMiB - 512);
}

}  // namespace
}  // namespace ashlar::timeline
