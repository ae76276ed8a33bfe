// Ranges that somebody else uses as they are: what goes back to the device, what sleeps, and what a recording says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "allocator/base/rng.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/core/recorder.h"
#include "allocator/device/sim_device.h"
#include "allocator/trace/codec.h"
#include "tests/allocator/core/faulty_device.h"
#include "tests/allocator/core/recorded_file.h"

namespace ashlar::core {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kCapacity = 256 * kMiB;

unsigned char* BytesAt(std::uint64_t address) {
  return reinterpret_cast<unsigned char*>(static_cast<std::uintptr_t>(address));
}

class RegistrationTest : public testing::TestWithParam<const char*> {
 protected:
  RegistrationTest() : allocator_(&device_, core::Options(std::string(GetParam()) + ",report_leaks:False")) {}
  Block* Allocate(std::uint64_t bytes, PoolId pool = {}) { return *allocator_.Allocate(bytes, Stream{0}, pool); }
  bool IsExpandable() const { return std::strcmp(GetParam(), "max_split_size_mb:20") != 0; }

  FaultyDevice device_{{.capacity_bytes = kCapacity}};
  CachingAllocator allocator_;
};
INSTANTIATE_TEST_SUITE_P(Confs, RegistrationTest,
                         testing::Values("expandable_segments:True", "policy:ashlar", "max_split_size_mb:20"));

TEST_P(RegistrationTest, WhatIsFreeInARangeStays) {
  Block* block = Allocate(64 * kMiB);
  const std::uint64_t address = block->address;
  const std::uint64_t stays = IsExpandable() ? block->segment->page_bytes : 64 * kMiB;
  std::memset(BytesAt(address), 7, 64 * kMiB);
  const std::uint64_t middle = address + 30 * kMiB;
  ASSERT_TRUE(allocator_.RegisterRange(middle, kMiB).ok());
  allocator_.Free(block);
  allocator_.EmptyCache();
  EXPECT_EQ(BytesAt(middle)[0], 7);
  EXPECT_EQ(std::memcmp(BytesAt(middle), BytesAt(middle) + 1, kMiB - 1), 0);
  EXPECT_EQ(device_.used_bytes(), stays) << "its page, or the segment";
  EXPECT_TRUE(allocator_.Validate().ok());

  ASSERT_TRUE(allocator_.UnregisterRange(middle).ok());
  allocator_.EmptyCache();
  EXPECT_EQ(device_.used_bytes(), 0u);
  EXPECT_TRUE(allocator_.Validate().ok());
}

TEST_P(RegistrationTest, RangesOverlapAndEndOneByOne) {
  Block* block = Allocate(4 * kMiB);
  const std::uint64_t address = block->address;
  ASSERT_TRUE(allocator_.RegisterRange(address, 4 * kMiB).ok());
  ASSERT_TRUE(allocator_.RegisterRange(address, 512).ok());
  allocator_.Free(block);
  ASSERT_TRUE(allocator_.UnregisterRange(address).ok()) << "the youngest, of 512 bytes";
  allocator_.EmptyCache();
  EXPECT_GE(device_.used_bytes(), 4 * kMiB);
  ASSERT_TRUE(allocator_.UnregisterRange(address).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(allocator_.UnregisterRange(address)));
  allocator_.EmptyCache();
  EXPECT_EQ(device_.used_bytes(), 0u);
}

TEST_P(RegistrationTest, OnlyWhatLiesInOneSegmentIsTaken) {
  Block* block = Allocate(4 * kMiB);
  const policy::Segment& segment = *block->segment;
  EXPECT_THAT(std::string(allocator_.RegisterRange(block->address, segment.size_bytes + 1).message()),
              HasSubstr("do not lie in one segment of this allocator"));
  EXPECT_TRUE(absl::IsInvalidArgument(allocator_.RegisterRange(segment.address - 1, 512)));
  EXPECT_TRUE(absl::IsInvalidArgument(allocator_.RegisterRange(block->address, 0)));
  EXPECT_TRUE(absl::IsInvalidArgument(allocator_.RegisterRange(block->address, ~std::uint64_t{0})));
  EXPECT_TRUE(absl::IsInvalidArgument(allocator_.UnregisterRange(block->address)));
  allocator_.Free(block);
}

TEST_P(RegistrationTest, SaysOnceThatCardsMayBeSlow) {
  Block* block = Allocate(4 * kMiB);
  testing::internal::CaptureStderr();
  ASSERT_TRUE(allocator_.RegisterRange(block->address, 4 * kMiB).ok());
  ASSERT_TRUE(allocator_.RegisterRange(block->address, kMiB).ok());
  const std::string said = testing::internal::GetCapturedStderr();
  if (IsExpandable()) {
    EXPECT_THAT(said, testing::MatchesRegex("ashlar: 4.00 MiB of an expandable segment were registered: [^\n]*\n"));
  } else {
    EXPECT_EQ(said, "");
  }
  allocator_.Free(block);
}

class RegisteredSleepTest : public RegistrationTest {};
INSTANTIATE_TEST_SUITE_P(Confs, RegisteredSleepTest, testing::Values("expandable_segments:True", "policy:ashlar"));

TEST_P(RegisteredSleepTest, APoolWithARangeStaysAwake) {
  constexpr PoolId kOther{0, 7};
  Block* block = Allocate(4 * kMiB);
  Block* other = Allocate(30 * kMiB, kOther);
  ASSERT_TRUE(allocator_.RegisterRange(block->address, kMiB).ok());
  const absl::StatusOr<SleepReport> slept = allocator_.Sleep({});
  ASSERT_TRUE(slept.ok()) << slept.status();
  EXPECT_FALSE(allocator_.IsAsleep(block->address));
  EXPECT_TRUE(allocator_.IsAsleep(other->address));
  EXPECT_EQ(slept->left_bytes, device_.used_bytes());
  EXPECT_THAT(std::string(allocator_.RegisterRange(other->address, kMiB).message()),
              HasSubstr("RegisterRange: pool {0, 7} is asleep: call Wake first"));
  ASSERT_TRUE(allocator_.UnregisterRange(block->address).ok());
  EXPECT_EQ(allocator_.Sleep({})->left_bytes, 0u);
  EXPECT_EQ(device_.used_bytes(), 0u);
  ASSERT_TRUE(allocator_.Wake({}).ok());
  allocator_.Free(block);
  allocator_.Free(other);
}

// Pages move to where a large request needs them, but for those that are registered.
TEST(RegistrationOfPagesTest, PagesThatMoveLeaveARangeOut) {
  FaultyDevice device({.capacity_bytes = kCapacity});
  CachingAllocator allocator(&device, core::Options("policy:ashlar,report_leaks:False"));
  Block* first = *allocator.Allocate(100 * kMiB, Stream{1});
  Block* second = *allocator.Allocate(100 * kMiB, Stream{2});
  const std::uint64_t address = first->address;
  ASSERT_TRUE(allocator.RegisterRange(address, 100 * kMiB).ok());
  allocator.Free(first);
  EXPECT_TRUE(absl::IsResourceExhausted(allocator.Allocate(100 * kMiB, Stream{3}).status()));
  ASSERT_TRUE(allocator.UnregisterRange(address).ok());
  const absl::StatusOr<Block*> third = allocator.Allocate(100 * kMiB, Stream{3});
  EXPECT_TRUE(third.ok()) << third.status();
  allocator.Free(second);
  allocator.Free(*third);
}

template <typename Kind>
std::ptrdiff_t Count(const trace::Snapshot& recording) {
  const std::vector<trace::Fact>& facts = recording.recording->facts;
  return std::count_if(facts.begin(), facts.end(),
                       [](const trace::Fact& fact) { return trace::IsAny<Kind>(fact.what); });
}

TEST_P(RegistrationTest, ARecordingReplaysToTheBit) {
  for (const bool begins_registered : {false, true}) {
    device::SimDevice device({.capacity_bytes = kCapacity});
    CachingAllocator allocator(&device, core::Options(std::string(GetParam()) + ",report_leaks:False"));
    const std::string path = TempFile("registration");
    std::unique_ptr<Recorder> recorder;
    const auto record = [&] { recorder = *Recorder::ToFile(&allocator, path, {.overwrites = true}); };
    Block* kept = *allocator.Allocate(30 * kMiB, Stream{0});
    Block* large = *allocator.Allocate(70 * kMiB, Stream{0});
    const std::uint64_t address = large->address;
    if (!begins_registered) record();
    ASSERT_TRUE(allocator.RegisterRange(address + 8 * kMiB, 3 * kMiB).ok());
    if (begins_registered) record();
    allocator.Free(large);
    allocator.EmptyCache();
    Block* again = *allocator.Allocate(20 * kMiB, Stream{0});
    allocator.Free(again);
    ASSERT_TRUE(allocator.UnregisterRange(address + 8 * kMiB).ok());
    allocator.EmptyCache();
    allocator.Free(kept);
    allocator.EmptyCache();
    ASSERT_TRUE(recorder->Finish().ok());
    const trace::Snapshot recording = *trace::Decode(BytesOf(path));
    ExpectReplaysExactly(recording);
    const trace::Snapshot read_again = *trace::Decode(trace::Encode(recording));
    EXPECT_EQ(read_again.recording->facts, recording.recording->facts);
    // Where only the last events are held, what stands before them is told first.
    const trace::Snapshot tail = *trace::Decode(BytesOf(path), {.max_events = 4});
    EXPECT_GT(tail.recording->events_before, 0u);
    EXPECT_EQ(Count<trace::fact::RangeUnregistered>(tail), 1);
    EXPECT_EQ(Count<trace::fact::RangeRegistered>(tail), 1);
  }
}

// A program of random calls. What a range holds was last written by the program, whatever went back meanwhile.
struct Watched {
  std::uint64_t address = 0;
  std::vector<unsigned char> bytes;
};

TEST_P(RegistrationTest, RandomProgramsKeepWhatIsRegistered) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Rng random(seed);
    std::vector<Block*> live;
    std::vector<Watched> watched;
    for (int step = 0; step < 120; ++step) {
      const std::uint64_t kind = random.Below(10);
      if (kind < 4) {
        const absl::StatusOr<Block*> block =
            allocator_.Allocate((1 + random.Below(16)) * 256 * kKiB, Stream{random.Below(2)});
        if (!block.ok()) continue;
        live.push_back(*block);
        const auto byte = static_cast<unsigned char>(1 + random.Below(255));
        std::memset(BytesAt((*block)->address), byte, (*block)->size_bytes);
        for (Watched& one : watched) std::memcpy(one.bytes.data(), BytesAt(one.address), one.bytes.size());
      } else if (kind < 6 && !live.empty()) {
        const std::size_t which = random.Below(live.size());
        allocator_.Free(live[which]);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(which));
      } else if (kind == 6 && !live.empty() && watched.size() < 6) {
        const Block* const block = live[random.Below(live.size())];
        const std::uint64_t offset = random.Below(block->size_bytes);
        const std::uint64_t size = 1 + random.Below(block->size_bytes - offset);
        const unsigned char* const at = BytesAt(block->address + offset);
        ASSERT_TRUE(allocator_.RegisterRange(block->address + offset, size).ok());
        watched.push_back({block->address + offset, {at, at + size}});
      } else if (kind == 7 && !watched.empty()) {
        ASSERT_TRUE(allocator_.UnregisterRange(watched.back().address).ok());
        watched.pop_back();
      } else {
        allocator_.EmptyCache();
      }
      for (const Watched& one : watched) {
        ASSERT_EQ(std::memcmp(one.bytes.data(), BytesAt(one.address), one.bytes.size()), 0)
            << "seed " << seed << " step " << step;
      }
      ASSERT_TRUE(allocator_.Validate().ok()) << "seed " << seed << " step " << step;
    }
    while (!watched.empty()) {
      ASSERT_TRUE(allocator_.UnregisterRange(watched.back().address).ok());
      watched.pop_back();
    }
    for (Block* block : live) allocator_.Free(block);
    allocator_.EmptyCache();
    ASSERT_EQ(device_.used_bytes(), 0u) << "seed " << seed;
  }
}

}  // namespace
}  // namespace ashlar::core
