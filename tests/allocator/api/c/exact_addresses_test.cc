// ashlar_allocate_exactly: a request that is served at the address that it names, or not at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ashlar.h"
#include "tests/allocator/api/c/c_api_fixture.h"

namespace {

using ashlar::tests::kMiB;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Size and state.
using LaidBlock = std::pair<std::uint64_t, int>;
constexpr LaidBlock Live(std::uint64_t bytes) { return {bytes, ASHLAR_BLOCK_LIVE}; }
constexpr LaidBlock Free(std::uint64_t bytes) { return {bytes, ASHLAR_BLOCK_FREE}; }

void AddBlocks(void* context, const ashlar_segment* segment) {
  for (std::size_t i = 0; i < segment->block_count; ++i) {
    static_cast<std::vector<LaidBlock>*>(context)->emplace_back(segment->blocks[i].size_bytes,
                                                                static_cast<int>(segment->blocks[i].state));
  }
}

// One segment of 30 MiB, which is free.
class ExactAddressTest : public ashlar::tests::CApiTest {
 protected:
  void SetUp() override {
    Open();
    segment_ = AllocateBytes(30 * kMiB);
    ashlar_free(allocator_, segment_);
  }
  char* AllocateBytes(std::size_t bytes) { return static_cast<char*>(Allocate(bytes)); }
  ashlar_status AllocateAt(std::size_t bytes, void* address, ashlar_stream stream = nullptr) {
    return ashlar_allocate_exactly(allocator_, bytes, stream, address);
  }
  // From the lowest address on.
  std::vector<LaidBlock> Blocks() const {
    std::vector<LaidBlock> out;
    EXPECT_EQ(ashlar_visit_segments(allocator_, AddBlocks, &out), ASHLAR_OK);
    return out;
  }

  char* segment_ = nullptr;
};

TEST_F(ExactAddressTest, ARequestIsServedInTheMiddleOfFreeMemory) {
  ASSERT_EQ(AllocateAt(8 * kMiB - 100, segment_ + 4 * kMiB), ASHLAR_OK) << ashlar_last_error();
  EXPECT_THAT(Blocks(), ElementsAre(Free(4 * kMiB), Live(8 * kMiB), Free(18 * kMiB)));
  EXPECT_EQ(Statistics().allocated_bytes, 8 * kMiB);
  EXPECT_EQ(Statistics().device_allocations, 1u);
  EXPECT_EQ(ashlar_free(allocator_, segment_), ASHLAR_INVALID_ARGUMENT) << "what lay below is no block of anybody's";
  ashlar_free(allocator_, segment_ + 4 * kMiB);
  EXPECT_THAT(Blocks(), ElementsAre(Free(30 * kMiB)));
  EXPECT_EQ(Allocate(30 * kMiB), segment_);
}

// Half a MiB is not cut off a large block.
TEST_F(ExactAddressTest, WhatIsLeftAboveGoesByTheRules) {
  const std::size_t half = kMiB / 2;
  ASSERT_EQ(AllocateAt(20 * kMiB, segment_ + 9 * kMiB + half), ASHLAR_OK) << ashlar_last_error();
  EXPECT_THAT(Blocks(), ElementsAre(Free(9 * kMiB + half), Live(20 * kMiB + half)));
}

TEST_F(ExactAddressTest, AnAddressThatIsNotTheRequestsIsRefused) {
  char* const live = AllocateBytes(40 * kMiB);
  ashlar_pool pool{};
  ASSERT_EQ(ashlar_create_pool(allocator_, &pool), ASHLAR_OK);
  const std::vector<LaidBlock> before = Blocks();
  const auto is_refused = [&](std::size_t bytes, void* address, std::uintptr_t stream = 0) {
    const ashlar_status status = AllocateAt(bytes, address, reinterpret_cast<void*>(stream));
    EXPECT_THAT(ashlar_last_error(), HasSubstr("are not free in the request's pool and stream"));
    return status == ASHLAR_INVALID_ARGUMENT;
  };
  EXPECT_TRUE(is_refused(8 * kMiB, live));
  EXPECT_TRUE(is_refused(8 * kMiB, segment_ + 23 * kMiB)) << "it is longer than what is free there";
  EXPECT_TRUE(is_refused(8 * kMiB, segment_ + 100)) << "no block begins there";
  EXPECT_TRUE(is_refused(1000, segment_)) << "it is of large blocks";
  EXPECT_TRUE(is_refused(8 * kMiB, segment_, 7)) << "it is another stream's";
  EXPECT_TRUE(is_refused(8 * kMiB, nullptr));
  EXPECT_TRUE(is_refused(0, segment_));
  EXPECT_TRUE(is_refused(~std::size_t{0}, segment_));
  ASSERT_EQ(ashlar_begin_pool(allocator_, pool, ASHLAR_ROUTE_PLAIN, nullptr, nullptr, nullptr), ASHLAR_OK);
  EXPECT_TRUE(is_refused(8 * kMiB, segment_)) << "it is another pool's";
  ASSERT_EQ(ashlar_end_pool(allocator_, pool), ASHLAR_OK);
  EXPECT_EQ(Blocks(), before);
  EXPECT_EQ(AllocateAt(8 * kMiB, segment_), ASHLAR_OK);
}

}  // namespace
