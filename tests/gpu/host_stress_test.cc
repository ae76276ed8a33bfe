// The stress of tests/gpu on host memory, where work is done at once: it holds the threads' side to account everywhere,
// and proves that a wrong stamp is found.
#include <atomic>
#include <memory>

#include "allocator/core/caching_allocator.h"
#include "allocator/device/host_device.h"
#include "gtest/gtest.h"
#include "tests/gpu/stress.h"

namespace ashlar::tests {
namespace {

class HostStamps final : public Stamps {
 public:
  Stream NewStream() override { return Stream{++streams_}; }

  void Write(Stream, std::uint64_t address, std::uint64_t bytes, std::uint32_t value, std::uint64_t) override {
    auto* words = reinterpret_cast<std::uint32_t*>(static_cast<std::uintptr_t>(address));
    for (std::uint64_t i = 0; i < bytes / 4; ++i) words[i] = StampOf(value, i);
  }

  void Check(Stream, std::uint64_t address, std::uint64_t bytes, std::uint32_t value, std::uint64_t) override {
    const auto* words = reinterpret_cast<const std::uint32_t*>(static_cast<std::uintptr_t>(address));
    for (std::uint64_t i = 0; i < bytes / 4; ++i) wrong_ += words[i] == StampOf(value, i) ? 0 : 1;
  }

  void Wait(Stream, Stream) override {}
  std::uint64_t WrongWords() override { return wrong_; }

 private:
  std::atomic<std::uint64_t> streams_{0};
  std::atomic<std::uint64_t> wrong_{0};
};

TEST(HostStressTest, NoBlockIsHeldTwice) {
  for (const char* conf : {"", "max_split_size_mb:21", "expandable_segments:True", "policy:ashlar"}) {
    SCOPED_TRACE(conf);
    device::HostDevice device({.capacity_bytes = 26 * kMiB});
    core::CachingAllocator allocator(&device,
                                     *policy::ParseConf(conf, policy::Compat::kTorch210, policy::Keys::kAshlar));
    HostStamps stamps;
    const StressResult result = RunStress(allocator, stamps, {.rounds = 100, .most_bytes = 5 * kMiB / 4});
    EXPECT_EQ(result.wrong_words, 0u);
    EXPECT_EQ(result.other_errors, 0u);
    EXPECT_GT(result.allocations, 100u);
    EXPECT_GT(result.out_of_memory, 0u) << "the ladder was climbed to its end";
    EXPECT_GT(result.handed_over, 0u);
    EXPECT_GT(result.recorded, 0u);
    EXPECT_TRUE(allocator.Validate().ok());
    allocator.EmptyCache();
    EXPECT_EQ(device.used_bytes(), 0u) << "everything was freed";
  }
}

TEST(HostStressTest, AnOverlapIsFound) {
  device::HostDevice device({.capacity_bytes = 8 * kMiB});
  const std::uint64_t address = *device.AllocateSegment(2 * kMiB);
  HostStamps stamps;
  stamps.Write(Stream{1}, address, 4096, 7, 0);
  stamps.Write(Stream{2}, address + 4000, 4096, 8, 0);
  stamps.Check(Stream{2}, address + 4000, 4096, 8, 0);
  EXPECT_EQ(stamps.WrongWords(), 0u);
  stamps.Check(Stream{1}, address, 4096, 7, 0);
  EXPECT_EQ(stamps.WrongWords(), 96u / 4);
}

}  // namespace
}  // namespace ashlar::tests
