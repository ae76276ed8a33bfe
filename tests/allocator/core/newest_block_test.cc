// The newest block's free is put off and its request served again: nobody can tell, but by what it costs.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "allocator/base/rng.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/core/inspect.h"
#include "allocator/core/thread_caches.h"
#include "allocator/device/sim_device.h"
#include "gtest/gtest.h"

namespace ashlar::core {
namespace {

class SilentSink final : public trace::EventSink {
 public:
  void OnEvent(const trace::Event&, std::uint64_t) override {}
};

// With a sink no thread cache serves, and nothing is put off.
class NewestProgram {
 public:
  NewestProgram(const policy::Options& options, bool is_by_address, bool is_serial)
      : is_by_address_(is_by_address), allocator_(&device_, options) {
    if (is_serial) allocator_.SetSink(&sink_);
  }
  ~NewestProgram() { allocator_.SetSink(nullptr); }

  CachingAllocator& allocator() { return allocator_; }
  std::uint64_t Allocate(std::uint64_t bytes, Stream stream) {
    if (is_by_address_) return *allocator_.AllocateAddress(bytes, stream);
    blocks_.push_back(*allocator_.Allocate(bytes, stream));
    return blocks_.back()->address;
  }
  void Free(std::uint64_t address) {
    if (is_by_address_) {
      EXPECT_TRUE(allocator_.FreeAddress(address));
      EXPECT_FALSE(allocator_.FreeAddress(address)) << "twice";
      return;
    }
    const auto is_it = [address](Block* block) { return block->address == address; };
    const auto at = std::find_if(blocks_.begin(), blocks_.end(), is_it);
    allocator_.Free(*at);
    blocks_.erase(at);
  }
  void Use(std::uint64_t address, Stream stream) {
    if (!is_by_address_) return;
    EXPECT_TRUE(allocator_.RecordStreamOfAddress(address, stream));
  }
  std::string Sums() {
    const Stats stats = allocator_.stats();
    std::string out;
    for (const PoolStat* stat : {&stats.allocation, &stats.allocated_bytes, &stats.requested_bytes, &stats.active,
                                 &stats.active_bytes, &stats.inactive_split, &stats.inactive_split_bytes}) {
      for (const PoolKind kind : {PoolKind::kAll, PoolKind::kSmall, PoolKind::kLarge}) {
        const Stat& of = (*stat)[kind];
        out += std::to_string(of.current) + " " + std::to_string(of.peak) + " " + std::to_string(of.allocated) + " " +
               std::to_string(of.freed()) + ", ";
      }
    }
    return out;
  }

 private:
  const bool is_by_address_;
  device::SimDevice device_{device::SimDeviceOptions{}};
  CachingAllocator allocator_;
  SilentSink sink_;
  std::vector<Block*> blocks_;
};

struct NewestCase {
  policy::FreeOrder order;
  bool is_expandable;
  bool is_by_address;
};

// Most frees are of the newest block, and most requests for what it had; the same at the same addresses as without.
TEST(NewestBlockTest, NobodyCanTell) {
  using policy::FreeOrder;
  for (const NewestCase& c :
       {NewestCase{FreeOrder::kAddress, false, true}, NewestCase{FreeOrder::kAddress, false, false},
        NewestCase{FreeOrder::kPerSegmentCounter, false, true}, NewestCase{FreeOrder::kPerBlockCounter, false, true},
        NewestCase{FreeOrder::kPerBlockCounter, true, false}, NewestCase{FreeOrder::kAddress, true, true}}) {
    policy::Options options;
    options.free_order = c.order;
    options.expandable_segments = c.is_expandable;
    NewestProgram plain(options, c.is_by_address, true);
    NewestProgram fast(options, c.is_by_address, false);
    Rng rng(7);
    std::vector<std::uint64_t> live;
    std::uint64_t bytes = 4096;
    for (int i = 0; i < 20'000; ++i) {
      const std::uint64_t dice = rng.Below(100);
      if (dice < 45 || live.empty()) {
        if (rng.Below(3) == 0) bytes = rng.Below(4) == 0 ? rng.Between(kMiB, 8 * kMiB) : rng.Between(1, kMiB);
        if (live.size() > 200) continue;
        const Stream stream{rng.Below(10) == 0 ? 5u : 0u};
        const std::uint64_t asked = bytes - rng.Below(std::min<std::uint64_t>(bytes, 100));
        live.push_back(plain.Allocate(asked, stream));
        ASSERT_EQ(fast.Allocate(asked, stream), live.back()) << "request " << i;
      } else {
        const std::size_t at = dice < 85 ? live.size() - 1 : rng.Below(live.size());
        if (dice < 48) {
          plain.Use(live[at], Stream{5});
          fast.Use(live[at], Stream{5});
        }
        plain.Free(live[at]);
        fast.Free(live[at]);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
      }
      if (rng.Below(500) == 0) {
        ASSERT_EQ(fast.Sums(), plain.Sums()) << "request " << i;
        ASSERT_TRUE(fast.allocator().Validate().ok()) << fast.allocator().Validate();
      }
    }
    EXPECT_EQ(fast.Sums(), plain.Sums());
    for (const std::uint64_t address : live) {
      plain.Free(address);
      fast.Free(address);
    }
  }
}

std::uint64_t CutsOf(policy::FreeOrder order, bool is_by_address) {
  policy::Options options;
  options.free_order = order;
  device::SimDevice device(device::SimDeviceOptions{});
  CachingAllocator allocator(&device, options);
  for (int i = 0; i < 1000; ++i) {
    if (is_by_address) {
      EXPECT_TRUE(allocator.FreeAddress(*allocator.AllocateAddress(4096 - i % 512, Stream{3})));
    } else {
      allocator.Free(*allocator.Allocate(4096 - i % 512, Stream{3}));
    }
  }
  return Inspection(allocator).path_costs().cuts;
}

TEST(NewestBlockTest, ComesBackWithoutACut) {
  EXPECT_LE(CutsOf(policy::FreeOrder::kAddress, true), 3u);
  EXPECT_LE(CutsOf(policy::FreeOrder::kPerSegmentCounter, false), 3u);
  // There a second allocation has another rank.
  EXPECT_EQ(CutsOf(policy::FreeOrder::kPerBlockCounter, true), 1000u);
}

}  // namespace
}  // namespace ashlar::core
