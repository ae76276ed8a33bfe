// The pure machine by itself: single steps, drawn; and random programs against a slow heap that shares no code with it.
#include "allocator/policy/heap.h"

#include <cstdint>
#include <string>
#include <vector>

#include "allocator/base/rng.h"
#include "gtest/gtest.h"
#include "tests/allocator/policy/heap_program.h"

namespace ashlar::policy {
namespace {

constexpr std::uint64_t kAddress = std::uint64_t{1} << 40;

// One lane of a heap whose segments are made where the plan asks for them.
class HeapTest : public testing::Test {
 protected:
  Decision DecisionOf(std::uint64_t bytes) const {
    return heap_.Decide({.bytes = bytes, .stream = Stream{1}, .pool = {}});
  }
  Block* Allocate(std::uint64_t bytes) {
    const Decision decision = DecisionOf(bytes);
    if (decision.block != nullptr) return heap_.Commit(decision);
    next_address_ += kGiB;
    return heap_.Place(decision, heap_.AddSegment(decision, next_address_, decision.segment_bytes));
  }
  void TearDown() override { EXPECT_EQ(heap_.Validate(), absl::OkStatus()); }

  Heap heap_{Options()};
  std::uint64_t next_address_ = kAddress - kGiB;
};

TEST_F(HeapTest, APlanChangesNothing) {
  Allocate(3 * kMiB);
  const Decision decision = DecisionOf(5 * kMiB);
  EXPECT_EQ(decision.rounded_bytes, 5 * kMiB);
  EXPECT_EQ(decision.block->size_bytes, 17 * kMiB);
  EXPECT_EQ(decision.block->state, BlockUse::kFree);
  EXPECT_EQ(DecisionOf(5 * kMiB).block, decision.block);
  EXPECT_EQ(DecisionOf(18 * kMiB).block, nullptr);
  EXPECT_EQ(DecisionOf(18 * kMiB).segment_bytes, 18 * kMiB);
}

// | 3 live |          17 free          |  ->  | 3 live | 5 live |      12 free      |
TEST_F(HeapTest, CommitCutsTheLowEnd) {
  Block* first = Allocate(3 * kMiB);
  Block* second = Allocate(5 * kMiB);
  EXPECT_EQ(second->address, first->End());
  EXPECT_EQ(second->size_bytes, 5 * kMiB);
  EXPECT_EQ(second->next->size_bytes, 12 * kMiB);
  EXPECT_EQ(second->next->state, BlockUse::kFree);
  EXPECT_EQ(heap_.reserved_bytes(), 20 * kMiB);
}

// | 9 live |    11 free    |: a rest of at most 1 MiB stays with the block that is handed out.
TEST_F(HeapTest, ASmallRestIsNotCut) {
  Allocate(9 * kMiB);
  Block* cut = Allocate(10 * kMiB - 512);
  EXPECT_EQ(cut->size_bytes, 10 * kMiB - 512);
  EXPECT_EQ(Heap::Release(cut)->size_bytes, 11 * kMiB);
  EXPECT_EQ(Allocate(10 * kMiB)->size_bytes, 11 * kMiB);
}

// | 4 free | 4 live | 12 free |: a block between free ones makes one of three; of two neighbours, one of two.
TEST_F(HeapTest, ReleaseMergesBothNeighbours) {
  Block* a = Allocate(4 * kMiB);
  Block* b = Allocate(4 * kMiB);
  Heap::Release(a);
  EXPECT_EQ(heap_.WholeFree(heap_.default_pair().large).size(), 0u);
  const Block* whole = Heap::Release(b);
  EXPECT_EQ(whole->address, kAddress);
  EXPECT_EQ(whole->size_bytes, 20 * kMiB);
  EXPECT_FALSE(whole->IsSplit());
  EXPECT_EQ(heap_.WholeFree(heap_.default_pair().large), std::vector<Block*>{const_cast<Block*>(whole)});
}

// A block that waits for events keeps its neighbours apart, and is not handed out.
TEST_F(HeapTest, AWaitingBlockMergesWithNothing) {
  Block* a = Allocate(4 * kMiB);
  Block* b = Allocate(4 * kMiB);
  Heap::MarkPending(b);
  EXPECT_EQ(Heap::Release(a)->size_bytes, 4 * kMiB);
  EXPECT_EQ(DecisionOf(6 * kMiB).block->address, b->End());
  EXPECT_EQ(Heap::Release(b)->size_bytes, 20 * kMiB);
}

// | 6 free | live | 4 free | live |: of two that fit, the smaller.
TEST_F(HeapTest, BestFit) {
  Block* six = Allocate(6 * kMiB);
  Allocate(2 * kMiB);
  Block* four = Allocate(4 * kMiB);
  Allocate(8 * kMiB);
  Heap::Release(six);
  Heap::Release(four);
  EXPECT_EQ(DecisionOf(3 * kMiB).block->address, four->address);
  EXPECT_EQ(DecisionOf(5 * kMiB).block->address, six->address);
}

TEST_F(HeapTest, StreamsAndPoolsDoNotShare) {
  Heap::Release(Allocate(4 * kMiB));
  EXPECT_NE(DecisionOf(4 * kMiB).block, nullptr);
  EXPECT_EQ(heap_.Decide({.bytes = 4 * kMiB, .stream = Stream{2}, .pool = {}}).block, nullptr);
  const PoolId graph{.first = 0, .second = 7};
  heap_.Pair(graph);
  EXPECT_EQ(heap_.Decide({.bytes = 4 * kMiB, .stream = Stream{1}, .pool = graph}).block, nullptr);
}

TEST_F(HeapTest, ARemovedSegmentIsGone) {
  Heap::Release(Allocate(30 * kMiB));
  EXPECT_EQ(heap_.reserved_bytes(), 30 * kMiB);
  heap_.RemoveSegment(heap_.WholeFree(heap_.default_pair().large).at(0));
  EXPECT_EQ(heap_.reserved_bytes(), 0u);
  EXPECT_TRUE(heap_.segments().empty());
  EXPECT_EQ(DecisionOf(30 * kMiB).block, nullptr);
}

TEST(HeapMaxSplitTest, LargeBlocksServeLargeRequestsOnly) {
  Options options;
  options.max_split_size_bytes = 40 * kMiB;
  Heap heap(options);
  const Decision large = heap.Decide({.bytes = 100 * kMiB, .stream = {}, .pool = {}});
  Heap::Release(heap.Place(large, heap.AddSegment(large, kAddress, large.segment_bytes)));
  EXPECT_EQ(heap.Decide({.bytes = 30 * kMiB, .stream = {}, .pool = {}}).block, nullptr);
  EXPECT_EQ(heap.Decide({.bytes = 80 * kMiB, .stream = {}, .pool = {}}).block, nullptr) << "20 MiB would be lost";
  EXPECT_NE(heap.Decide({.bytes = 81 * kMiB, .stream = {}, .pool = {}}).block, nullptr);
}

// Each record that it must notice, changed behind its back.
TEST(HeapValidateTest, NoticesWhatIsWrong) {
  const auto says = [](void (*spoil)(Block& live)) {
    Heap heap{Options()};
    const Decision decision = heap.Decide({.bytes = 3 * kMiB, .stream = {}, .pool = {}});
    Block* live = heap.Place(decision, heap.AddSegment(decision, kAddress, decision.segment_bytes));
    EXPECT_EQ(heap.Validate(), absl::OkStatus());
    const Block before = *live;
    spoil(*live);
    const absl::Status status = heap.Validate();
    *live = before;
    return status.ok() ? "nothing" : "a difference";
  };
  EXPECT_STREQ(says([](Block& live) { live.size_bytes -= 512; }), "a difference");
  EXPECT_STREQ(says([](Block& live) { live.address += 512; }), "a difference");
  EXPECT_STREQ(says([](Block& live) { live.state = BlockUse::kFree; }), "a difference");
  EXPECT_STREQ(says([](Block& live) { live.next_is_free = false; }), "a difference");
  EXPECT_STREQ(says([](Block& live) { live.requested_bytes = 9 * kMiB; }), "a difference");
}

HeapStep RandomStep(Rng& rng) {
  const std::uint64_t kind = rng.Below(20);
  const std::size_t which = rng.Below(1000);
  if (kind < 9) {
    const std::uint64_t bytes = rng.Below(2) == 0 ? rng.Between(1, 2 * kMiB) : rng.Between(1, 48 * kMiB);
    return {HeapStep::kAllocate, bytes, rng.Below(3), rng.Below(8) < 6 ? 0 : rng.Between(1, 2), 0};
  }
  if (kind < 16) return {HeapStep::kFree, 0, 0, 0, which};
  if (kind < 18) return {HeapStep::kWait, 0, 0, 0, which};
  if (kind < 19) return {HeapStep::kWaitOver, 0, 0, 0, which};
  return {rng.Below(4) == 0 ? HeapStep::kReturnCache : HeapStep::kWaitOver, 0, 0, 0, which};
}

void HeapRunsLikeTheSlowOne(const HeapProgramOptions& options) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Rng rng(seed);
    std::vector<HeapStep> steps;
    for (int i = 0; i < 400; ++i) steps.push_back(RandomStep(rng));
    ASSERT_EQ(RunHeapProgram(options, steps), "") << "seed " << seed << ": " << SmallHeapProgram(options, steps);
  }
}

TEST(HeapProgramTest, RandomPrograms) { HeapRunsLikeTheSlowOne({}); }
TEST(HeapProgramTest, RandomProgramsWithMaxSplitSize) {
  HeapRunsLikeTheSlowOne({.max_split_size_bytes = 20 * kMiB});
  HeapRunsLikeTheSlowOne({.max_split_size_bytes = 3 * kMiB});
}
TEST(HeapProgramTest, RandomProgramsOfExpandableSegments) { HeapRunsLikeTheSlowOne({.expandable_segments = true}); }

}  // namespace
}  // namespace ashlar::policy
