// Random programs; after every few steps the accounting is compared with a ledger that knows only the events: which
// bytes the device gave and took back, which blocks were handed out, freed, and finished.
#include "allocator/core/accounting.h"

#include <iterator>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "allocator/base/rng.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/device/sim_device.h"
#include "gtest/gtest.h"

namespace ashlar::core {
namespace {

struct Figures {
  std::uint64_t reserved = 0, live = 0, rounding = 0, pending = 0, stranded = 0, whole_free = 0, pooled = 0;
  std::uint64_t segments = 0, stranded_segments = 0, pinning_blocks = 0;
  bool operator==(const Figures&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Figures& f) {
  return out << "reserved " << f.reserved << " live " << f.live << " rounding " << f.rounding << " pending "
             << f.pending << " stranded " << f.stranded << " whole_free " << f.whole_free << " pooled " << f.pooled
             << " segments " << f.segments << " stranded_segments " << f.stranded_segments << " pinning "
             << f.pinning_blocks;
}

Figures FiguresOf(const Accounting& a) {
  return {a.reserved_bytes,         a.live_bytes.value(), a.rounding_bytes.value(), a.pending_bytes,
          a.stranded_bytes,         a.whole_free_bytes,   a.private_pool_bytes,     a.segment_count,
          a.stranded_segment_count, a.pinning_block_count};
}

class EventLedger final : public trace::EventSink {
 public:
  void OnEvent(const trace::Event& event, std::uint64_t block_size_bytes) override {
    switch (event.action) {
      case trace::Action::kSegmentAlloc:
      case trace::Action::kSegmentMap:
        Obtain(event);
        break;
      case trace::Action::kSegmentFree:
      case trace::Action::kSegmentUnmap:
        Return(event.address, event.size_bytes);
        break;
      case trace::Action::kAlloc:
        blocks_[event.address] = {block_size_bytes, event.size_bytes, false};
        break;
      case trace::Action::kFreeRequested:
        blocks_.at(event.address).is_pending = true;
        break;
      case trace::Action::kFreeCompleted:
        blocks_.erase(event.address);
        break;
      default:
        break;
    }
  }

  Figures Sum() const {
    Figures out;
    for (const auto& [address, range] : ranges_) AddRange(address, range, out);
    return out;
  }

 private:
  struct Block {
    std::uint64_t size = 0, requested = 0;
    bool is_pending = false;
  };
  struct Range {
    std::uint64_t size = 0;
    bool is_private = false, is_mapped = false;
  };

  // Mapped ranges that touch are one.
  void Obtain(const trace::Event& event) {
    Range range{event.size_bytes, event.pool.has_value() && !(*event.pool).IsDefault(),
                event.action == trace::Action::kSegmentMap};
    std::uint64_t address = event.address;
    if (range.is_mapped) {
      if (const auto above = ranges_.find(address + range.size); above != ranges_.end() && above->second.is_mapped) {
        range.size += above->second.size;
        ranges_.erase(above);
      }
      for (auto below = ranges_.begin(); below != ranges_.end(); ++below) {
        if (!below->second.is_mapped || below->first + below->second.size != address) continue;
        address = below->first;
        range.size += below->second.size;
        ranges_.erase(below);
        break;
      }
    }
    ranges_[address] = range;
  }

  void Return(std::uint64_t address, std::uint64_t size) {
    auto around = std::prev(ranges_.upper_bound(address));
    const std::uint64_t begin = around->first;
    const Range whole = around->second;
    ASSERT_LE(address + size, begin + whole.size);
    ranges_.erase(around);
    if (address > begin) ranges_[begin] = {address - begin, whole.is_private, whole.is_mapped};
    const std::uint64_t above = begin + whole.size - (address + size);
    if (above > 0) ranges_[address + size] = {above, whole.is_private, whole.is_mapped};
  }

  void AddRange(std::uint64_t address, const Range& range, Figures& out) const {
    std::uint64_t used = 0, count = 0;
    for (auto it = blocks_.lower_bound(address); it != blocks_.end() && it->first < address + range.size; ++it) {
      const Block& block = it->second;
      used += block.size;
      ++count;
      if (block.is_pending) {
        out.pending += block.size;
      } else {
        out.live += block.requested;
        out.rounding += block.size - block.requested;
      }
    }
    out.reserved += range.size;
    ++out.segments;
    const std::uint64_t free_bytes = range.size - used;
    if (range.is_private) {
      out.pooled += free_bytes;
    } else if (count == 0) {
      out.whole_free += free_bytes;
    } else if (free_bytes > 0) {
      out.stranded += free_bytes;
      ++out.stranded_segments;
      out.pinning_blocks += count;
    }
  }

  std::map<std::uint64_t, Block> blocks_;
  std::map<std::uint64_t, Range> ranges_;
};

// What a run has met, so that the test knows it tested something.
struct Met {
  bool pending = false, stranded = false, whole_free = false, pooled = false, out_of_memory = false;
};

std::uint64_t RandomBytes(Rng& random) {
  static constexpr std::uint64_t kLargest[] = {2'000, kMiB, 12 * kMiB, 90 * kMiB};
  return 1 + random.Below(kLargest[random.Below(4)]);
}

void RunProgram(std::uint64_t seed, const std::string& conf, Met& met) {
  Rng random(seed);
  device::SimDeviceOptions device_options;
  device_options.capacity_bytes = (200 + random.Below(1'000)) * kMiB;
  device::SimDevice device(device_options);
  CachingAllocator allocator(&device, *policy::ParseConf(conf, policy::Compat::kTorch210, policy::Keys::kAshlar));
  EventLedger ledger;
  allocator.SetSink(&ledger);
  std::vector<Block*> live;
  for (int step = 0; step < 400; ++step) {
    const std::uint64_t choice = random.Below(100);
    if (choice < 50) {
      const PoolId pool = random.Below(5) == 0 ? PoolId{0, 1 + random.Below(2)} : PoolId{};
      absl::StatusOr<Block*> block = allocator.Allocate(RandomBytes(random), Stream{random.Below(3)}, pool);
      if (block.ok()) live.push_back(*block);
      met.out_of_memory = met.out_of_memory || !block.ok();
    } else if (choice < 88 && !live.empty()) {
      const std::size_t at = random.Below(live.size());
      if (random.Below(3) == 0) allocator.RecordStream(live[at], Stream{5 + random.Below(3)});
      allocator.Free(live[at]);
      live[at] = live.back();
      live.pop_back();
    } else if (choice < 95) {
      device.CompleteAllWork();
    } else if (choice < 97) {
      allocator.EmptyCache();
    }
    const Accounting parts = Account(allocator.Segments());
    const Figures figures = FiguresOf(parts);
    ASSERT_EQ(figures, ledger.Sum()) << "conf '" << conf << "', seed " << seed << ", step " << step;
    ASSERT_EQ(figures.reserved, figures.live + figures.rounding + figures.pending + figures.stranded +
                                    figures.whole_free + figures.pooled);
    ASSERT_EQ(parts.SumOfParts(), parts.reserved_bytes);
    ASSERT_EQ(parts.allocated_bytes, figures.live + figures.rounding);
    ASSERT_EQ(static_cast<std::int64_t>(figures.reserved), allocator.stats().reserved_bytes.all().current);
    ASSERT_EQ(static_cast<std::int64_t>(parts.allocated_bytes), allocator.stats().allocated_bytes.all().current);
    met.pending = met.pending || figures.pending > 0;
    met.stranded = met.stranded || figures.stranded > 0;
    met.whole_free = met.whole_free || figures.whole_free > 0;
    met.pooled = met.pooled || figures.pooled > 0;
  }
}

TEST(AccountingTest, EqualsALedgerOfEventsOnRandomPrograms) {
  for (const char* conf : {"", "expandable_segments:True", "policy:ashlar", "max_split_size_mb:32",
                           "roundup_power2_divisions:4", "garbage_collection_threshold:0.5"}) {
    Met met;
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      RunProgram(seed, conf, met);
      if (HasFatalFailure()) return;
    }
    EXPECT_TRUE(met.pending && met.stranded && met.whole_free && met.pooled && met.out_of_memory) << conf;
  }
}

// By hand: one segment of each kind.
TEST(AccountingTest, EveryPartByHand) {
  using trace::BlockState;
  trace::SnapshotSegment mixed;
  mixed.size_bytes = 4096;
  mixed.blocks = {{.address = 0, .size_bytes = 1024, .requested_bytes = 1000, .state = BlockState::kLive},
                  {.address = 1024, .size_bytes = 512, .requested_bytes = 512, .state = BlockState::kPending},
                  {.address = 1536, .size_bytes = 2560, .requested_bytes = 99, .state = BlockState::kFree}};
  trace::SnapshotSegment full;
  full.address = 8192;
  full.size_bytes = 512;
  full.blocks = {{.address = 8192, .size_bytes = 512, .requested_bytes = 1, .state = BlockState::kLive}};
  trace::SnapshotSegment empty;
  empty.address = 16384;
  empty.size_bytes = 2048;
  empty.blocks = {{.address = 16384, .size_bytes = 2048, .requested_bytes = {}, .state = BlockState::kFree}};
  trace::SnapshotSegment pooled = mixed;
  pooled.pool = PoolId{0, 3};
  EXPECT_EQ(FiguresOf(Account({mixed, full, empty, pooled})), (Figures{.reserved = 4096 + 512 + 2048 + 4096,
                                                                       .live = 1000 + 1 + 1000,
                                                                       .rounding = 24 + 511 + 24,
                                                                       .pending = 512 + 512,
                                                                       .stranded = 2560,
                                                                       .whole_free = 2048,
                                                                       .pooled = 2560,
                                                                       .segments = 4,
                                                                       .stranded_segments = 1,
                                                                       .pinning_blocks = 2}));
}

// One live block whose request is not known: only the sum of live and rounding is.
TEST(AccountingTest, AnUnknownRequestIsNotZero) {
  AccountingSum sum;
  const AccountedBlock known{512, 100, trace::BlockState::kLive};
  const AccountedBlock unknown{1024, std::nullopt, trace::BlockState::kLive};
  sum.AddSegment(4096, {}, {known, unknown, known});
  EXPECT_FALSE(sum.result().live_bytes.has_value());
  EXPECT_FALSE(sum.result().rounding_bytes.has_value());
  EXPECT_EQ(sum.result().allocated_bytes, 2048u);
  EXPECT_EQ(sum.result().SumOfParts(), 4096u);
}

TEST(AccountingTest, APendingBlocksRequestDoesNotMatter) {
  AccountingSum sum;
  sum.AddSegment(4096, {}, {AccountedBlock{512, std::nullopt, trace::BlockState::kPending}});
  EXPECT_EQ(sum.result().live_bytes, 0u);
  EXPECT_EQ(sum.result().pending_bytes, 512u);
}

}  // namespace
}  // namespace ashlar::core
