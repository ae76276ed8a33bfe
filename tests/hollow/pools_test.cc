#include "hollow/model/pools.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/hollow/one_device.h"
#include "tests/hollow/property.h"

namespace ashlar::hollow {
namespace {

using test::OneDevice;
using test::Operation;
using test::Operations;

struct PoolOnDevice {
  explicit PoolOnDevice(std::uint64_t total_bytes, std::uint64_t max_bytes = 0)
      : machine(total_bytes), pool(machine.device(), 0, 1, max_bytes) {}
  Error Allocate(std::uint64_t bytes, std::uint64_t* address) {
    return pool.Allocate(bytes, machine.allocations, address);
  }
  void Free(std::uint64_t address) { pool.Free(address, machine.allocations); }
  OneDevice machine;
  PoolModel pool;
};

TEST(PoolTest, TakesSegmentsAndGivesTheLowestPlace) {
  PoolOnDevice on(1024 * kMiB);
  std::uint64_t first = 0, second = 0, large = 0;
  ASSERT_EQ(on.Allocate(1, &first), Error::kNone);
  ASSERT_EQ(on.Allocate(1000, &second), Error::kNone);
  EXPECT_EQ(first % (32 * kMiB), 0U);
  EXPECT_EQ(second, first + 512);
  EXPECT_EQ(on.machine.device().UsedBytes(), 32 * kMiB);
  ASSERT_EQ(on.Allocate(40 * kMiB, &large), Error::kNone);
  EXPECT_EQ(large, first + 512 + 1024) << "over the chunk that is there and the next";
  EXPECT_EQ(on.pool.use.reserved, 64 * kMiB);
  EXPECT_EQ(on.pool.use.used, 40 * kMiB + 1 + 1000);
  EXPECT_EQ(on.machine.allocations.Holding(second + 999)->kind, MemoryKind::kPool);
  EXPECT_EQ(on.machine.allocations.Holding(second + 1000), nullptr) << "as asked for, not as rounded";
  on.Free(first);
  ASSERT_EQ(on.Allocate(512, &first), Error::kNone);
  EXPECT_EQ(first + 512, second) << "a freed block may be taken at once";
  EXPECT_EQ(on.pool.use.used_high, 40 * kMiB + 512 + 1000);
}

// What an H200 was seen to do with two blocks of 40 MiB.
TEST(PoolTest, AChunkGoesBackFromBetweenBlocks) {
  PoolOnDevice on(1024 * kMiB);
  std::uint64_t first = 0, second = 0, third = 0;
  ASSERT_EQ(on.Allocate(40 * kMiB, &first), Error::kNone);
  ASSERT_EQ(on.Allocate(40 * kMiB, &second), Error::kNone);
  EXPECT_EQ(on.pool.use.reserved, 96 * kMiB);
  on.Free(first);
  on.pool.TrimTo(0);
  EXPECT_EQ(on.pool.use.reserved, 64 * kMiB) << "the chunk that both lay in stays";
  ASSERT_EQ(on.Allocate(33 * kMiB, &third), Error::kNone);
  EXPECT_EQ(third, first) << "its place needs one chunk";
  EXPECT_EQ(on.pool.use.reserved, 96 * kMiB);
}

TEST(PoolTest, SegmentsGoBackAboveTheThreshold) {
  PoolOnDevice on(1024 * kMiB);
  std::uint64_t blocks[3] = {};
  for (std::uint64_t& block : blocks) ASSERT_EQ(on.Allocate(32 * kMiB, &block), Error::kNone);
  on.Free(blocks[0]);
  on.Free(blocks[2]);
  EXPECT_EQ(on.pool.use.reserved, 96 * kMiB) << "nothing was synchronised";
  on.pool.release_threshold = 64 * kMiB;
  on.pool.Synchronized();
  EXPECT_EQ(on.pool.use.reserved, 64 * kMiB);
  on.pool.release_threshold = 0;
  on.pool.Synchronized();
  EXPECT_EQ(on.pool.use.reserved, 32 * kMiB) << "the one that is in use stays";
  EXPECT_EQ(on.machine.device().UsedBytes(), 32 * kMiB);
  EXPECT_EQ(on.pool.use.reserved_high, 96 * kMiB);
  EXPECT_FALSE(on.pool.is_empty());
  on.Free(blocks[1]);
  EXPECT_TRUE(on.pool.is_empty());
}

TEST(PoolTest, WhatItHoldsForNothingIsReturnedBeforeItIsOutOfMemory) {
  PoolOnDevice on(64 * kMiB);
  std::uint64_t small = 0, large = 0;
  ASSERT_EQ(on.Allocate(1, &small), Error::kNone);
  on.Free(small);
  EXPECT_EQ(on.Allocate(64 * kMiB, &large), Error::kNone);
  EXPECT_EQ(on.machine.device().out_of_memory_count(), 0U) << "the program heard of none";
  std::uint64_t none = 7;
  EXPECT_EQ(on.Allocate(1, &none), Error::kOutOfMemory);
  EXPECT_EQ(on.Allocate(std::uint64_t{1} << 61, &none), Error::kOutOfMemory);
  EXPECT_EQ(on.machine.device().out_of_memory_count(), 2U);
  EXPECT_EQ(none, 7U);
}

TEST(PoolTest, ALimitOfItsOwn) {
  PoolOnDevice on(1024 * kMiB, 64 * kMiB);
  std::uint64_t first = 0, second = 0;
  EXPECT_EQ(on.Allocate(65 * kMiB, &first), Error::kOutOfMemory);
  EXPECT_EQ(on.Allocate(33 * kMiB, &first), Error::kNone);
  EXPECT_EQ(on.Allocate(33 * kMiB, &second), Error::kOutOfMemory);
  EXPECT_EQ(on.Allocate(31 * kMiB, &second), Error::kNone) << "the rest of the segment";
}

TEST(PoolTest, APlannedFailureIsHeardOnce) {
  PoolOnDevice on(1024 * kMiB);
  std::uint64_t address = 0;
  on.machine.failures.fail_call = 1;
  EXPECT_EQ(on.Allocate(1, &address), Error::kOutOfMemory) << "though it would have to grow";
  EXPECT_EQ(on.Allocate(1, &address), Error::kNone);
  on.machine.failures.fail_call = 2;
  EXPECT_EQ(on.Allocate(1, &address), Error::kNone);
  EXPECT_EQ(on.Allocate(1, &address), Error::kOutOfMemory) << "though it has the room";
  EXPECT_EQ(on.machine.device().out_of_memory_count(), 2U);
}

// Blocks lie apart, inside what is charged, and the counts are the sums.
std::string PoolDifference(const Operations& program) {
  PoolOnDevice on(256 * kMiB);
  std::map<std::uint64_t, std::uint64_t> live, asked;  // address -> bytes, rounded and as asked for
  for (const Operation& one : program) {
    if (one.kind <= 1) {
      const std::uint64_t bytes = one.kind == 0 ? one.b * 100 + 1 : one.b * kMiB + 1;
      std::uint64_t address = 0;
      const Error error = on.Allocate(bytes, &address);
      const std::uint64_t rounded = (bytes + 511) / 512 * 512;
      if (error == Error::kOutOfMemory && on.pool.use.reserved + rounded <= 256 * kMiB - 32 * kMiB)
        return "it had room";
      if (error == Error::kNone) asked[address] = bytes;
      if (error == Error::kNone && (address % 512 != 0 || !live.emplace(address, rounded).second))
        return "a bad address";
    } else if (one.kind == 2 && !live.empty()) {
      const auto freed = std::next(live.begin(), static_cast<std::ptrdiff_t>(one.a % live.size()));
      on.Free(freed->first);
      live.erase(freed);
    } else if (one.kind == 3) {
      on.pool.TrimTo(one.b * kMiB);
    }
    std::uint64_t used = 0, end = 0;
    for (const auto& [address, bytes] : live) {
      if (address < end) return "two blocks overlap";
      end = address + bytes;
      used += asked[address];
      if (on.machine.allocations.At(address) == nullptr) return "a block is not listed";
    }
    if (on.pool.use.used != used) return "the used bytes are wrong";
    if (on.pool.use.reserved != on.machine.device().UsedBytes()) return "the reserved bytes are not what is charged";
    if (on.pool.use.used > on.pool.use.reserved || on.pool.is_empty() != live.empty())
      return "more is used than reserved";
  }
  return "";
}

TEST(PoolTest, BlocksLieApartAndCountsAreSums) {
  test::CheckPrograms("PoolTest", "PoolDifference", PoolDifference,
                      {.kinds = 4, .operations = 150, .below_a = 64, .below_b = 50, .seeds = 150});
}

}  // namespace
}  // namespace ashlar::hollow
