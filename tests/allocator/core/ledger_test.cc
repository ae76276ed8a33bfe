#include "allocator/core/ledger.h"

#include <string>
#include <vector>

#include "allocator/base/units.h"
#include "gtest/gtest.h"
#include "tests/allocator/core/parts.h"

namespace ashlar::core {
namespace {

constexpr std::uint64_t kAt = 0x7f0000000000;

policy::Decision DecisionOf(Ledger& ledger, std::uint64_t bytes) {
  ledger.heap().Pair({});
  return ledger.heap().Decide({bytes, Stream{3}, {}});
}

// A segment, a block of it, and the way back: each is booked once, told once, and leaves nothing.
TEST(LedgerTest, ABlockThereAndBack) {
  Parts parts;
  ToldSink sink;
  Ledger& ledger = parts.ledger;
  ledger.SetSink(&sink);
  const policy::Decision decision = DecisionOf(ledger, 2 * kMiB);
  policy::Block* whole = ledger.AddSegment(decision, kAt);
  EXPECT_EQ(sink.Take(), (std::vector<std::string>{"segment_alloc 20971520"}));
  EXPECT_EQ(ledger.stats().segment.all().current, 1);
  EXPECT_EQ(ledger.stats().reserved_bytes[PoolKind::kLarge].current, Signed(20 * kMiB));
  EXPECT_EQ(ledger.stats().num_device_alloc, 1u);

  policy::Block* block = ledger.Place(decision, whole);
  EXPECT_EQ(ledger.stats().inactive_split.all().current, 1) << "the rest of the segment";
  ledger.HandOut(*block, decision);
  EXPECT_EQ(sink.Take(), (std::vector<std::string>{"alloc 2097152"}));
  EXPECT_EQ(ledger.stats().allocation.all().current, 1);
  EXPECT_EQ(ledger.stats().active_bytes.all().current, Signed(2 * kMiB));
  EXPECT_EQ(ledger.stats().requested_bytes.all().current, Signed(2 * kMiB));
  EXPECT_EQ(ledger.Validate(), absl::OkStatus());

  ledger.BeginFree(*block);
  EXPECT_EQ(ledger.stats().allocation.all().current, 0);
  EXPECT_EQ(ledger.stats().active.all().current, 1) << "until the free completes";
  whole = ledger.CompleteFree(block);
  EXPECT_EQ(sink.Take(), (std::vector<std::string>{"free_requested 2097152", "free_completed 2097152"}));
  EXPECT_EQ(ledger.stats().active.all().current, 0);
  EXPECT_EQ(ledger.stats().inactive_split.all().current, 0);

  ledger.RemoveSegment(whole);
  EXPECT_EQ(sink.Take(), (std::vector<std::string>{"segment_free 20971520"}));
  EXPECT_EQ(ledger.stats().segment.all().current, 0);
  EXPECT_EQ(ledger.stats().reserved_bytes.all().current, 0);
  EXPECT_EQ(ledger.stats().reserved_bytes.all().peak, Signed(20 * kMiB));
  EXPECT_EQ(ledger.stats().num_device_free, 1u);
  EXPECT_EQ(parts.gone_of, std::vector<Stream>{Stream{3}});
  EXPECT_TRUE(ledger.heap().default_pair().large.lanes.empty());
  EXPECT_EQ(ledger.Validate(), absl::OkStatus());
}

TEST(LedgerTest, PagesOfAReservation) {
  Parts parts({}, "expandable_segments:True");
  ToldSink sink;
  Ledger& ledger = parts.ledger;
  ledger.SetSink(&sink);
  const policy::Decision decision = DecisionOf(ledger, 2 * kMiB);
  policy::Block* reserved = ledger.AddReservation(decision, kAt, 1 * kGiB, 20 * kMiB);
  EXPECT_EQ(ledger.stats().reserved_bytes.all().current, 0) << "address space is no memory";
  policy::Block* mapped = ledger.MarkMapped(reserved, 20 * kMiB, 20 * kMiB);
  EXPECT_EQ(ledger.stats().reserved_bytes.all().current, Signed(20 * kMiB));
  EXPECT_EQ(ledger.stats().segment.all().current, 0);
  policy::Block* unmapped = ledger.MarkUnmapped(mapped, {kAt, 20 * kMiB});
  EXPECT_EQ(ledger.stats().reserved_bytes.all().current, 0);
  ledger.RemoveReservation(unmapped);
  EXPECT_EQ(sink.Take(), (std::vector<std::string>{
                             absl::StrCat("fact ", trace::AnyFact(trace::fact::AddressesReserved{}).index(), " ", kAt),
                             "segment_map 20971520", "segment_unmap 20971520"}));
  EXPECT_EQ(ledger.stats().num_device_alloc, 1u);
  EXPECT_EQ(ledger.stats().num_device_free, 1u);
  EXPECT_EQ(ledger.Validate(), absl::OkStatus());
}

// A state that is taken over counts as if it had come about here, but for what was asked of the device.
TEST(LedgerTest, ARestoredSegmentIsBookedAsAnAllocatedOne) {
  Parts parts;
  policy::Block* live = parts.Get(2 * kMiB);
  policy::Block* pending = parts.Get(3 * kMiB);
  ASSERT_NE(pending, nullptr);
  parts.DropAfter(pending, Stream{7});
  const Stats& wanted = parts.ledger.stats();

  Parts restored;
  using State = policy::BlockUse;
  const std::vector<policy::Block*> blocks = restored.ledger.Restore(
      {0, Stream{0}, {}}, false, false, live->address,
      {{2 * kMiB, 2 * kMiB, State::kLive}, {3 * kMiB, 3 * kMiB, State::kPending}, {15 * kMiB, 0, State::kFree}});
  blocks[1]->pending_events = 1;
  EXPECT_EQ(restored.ledger.Validate(), absl::OkStatus());
  const Stats& got = restored.ledger.stats();
  EXPECT_EQ(got.allocation.all().current, wanted.allocation.all().current);
  EXPECT_EQ(got.allocated_bytes.all().current, wanted.allocated_bytes.all().current);
  EXPECT_EQ(got.active.all().current, wanted.active.all().current);
  EXPECT_EQ(got.active_bytes.all().current, wanted.active_bytes.all().current);
  EXPECT_EQ(got.requested_bytes.all().current, wanted.requested_bytes.all().current);
  EXPECT_EQ(got.reserved_bytes.all().current, wanted.reserved_bytes.all().current);
  EXPECT_EQ(got.segment.all().current, wanted.segment.all().current);
  EXPECT_EQ(got.inactive_split.all().current, wanted.inactive_split.all().current);
  EXPECT_EQ(got.inactive_split_bytes.all().current, wanted.inactive_split_bytes.all().current);
  EXPECT_EQ(got.num_device_alloc, 0u);
}

TEST(LedgerTest, OversizeBlocksAndSegmentsAreCounted) {
  Parts parts({}, "max_split_size_mb:32");
  policy::Block* block = parts.Get(64 * kMiB);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(parts.ledger.stats().oversize_segments.current, 1);
  EXPECT_EQ(parts.ledger.stats().oversize_allocations.current, 1);
  parts.Drop(block);
  EXPECT_EQ(parts.ledger.stats().oversize_allocations.current, 0);
  EXPECT_EQ(parts.ladder.EmptyCache(), absl::OkStatus());
  EXPECT_EQ(parts.ledger.stats().oversize_segments.current, 0);
}

// What the cache served reaches the statistics as if it had been booked here, and may not pass a peak.
TEST(LedgerTest, SumsOfTheCacheAreFolded) {
  Parts parts;
  policy::Block* block = parts.Get(2 * kMiB);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(parts.ledger.RoomBelowPeaks(PoolKind::kAll)[kBlocks], 0);
  parts.Drop(block);
  EXPECT_EQ(parts.ledger.RoomBelowPeaks(PoolKind::kAll)[kBlocks], 1);
  EXPECT_EQ(parts.ledger.RoomBelowPeaks(PoolKind::kLarge)[kBlockBytes], Signed(2 * kMiB));
  EXPECT_EQ(parts.ledger.RoomBelowPeaks(PoolKind::kSmall)[kBlocks], 0);
  Changes changes{};
  Changes increases{};
  changes[kBlocks] = 1;
  increases[kBlocks] = 5;
  parts.ledger.Fold(false, changes, increases);
  EXPECT_EQ(parts.ledger.stats().allocation.all().current, 1);
  EXPECT_EQ(parts.ledger.stats().allocation.all().peak, 1);
  EXPECT_EQ(parts.ledger.stats().active[PoolKind::kLarge].allocated, 6);
}

TEST(LedgerTest, ABlockOfAnotherStreamNamesTheRequest) {
  Parts parts({}, "borrow_across_streams:True");
  ToldSink sink;
  policy::Block* block = parts.Get(2 * kMiB, Stream{1});
  ASSERT_NE(block, nullptr);
  parts.ledger.SetSink(&sink);
  const policy::Decision decision = parts.ledger.heap().Decide({2 * kMiB, Stream{9}, {}});
  parts.ledger.HandOut(*block, decision);
  EXPECT_EQ(sink.Take(),
            (std::vector<std::string>{absl::StrCat("fact ", trace::AnyFact(trace::fact::AskedFor{}).index(), " 9"),
                                      "alloc 2097152"}));
}

}  // namespace
}  // namespace ashlar::core
