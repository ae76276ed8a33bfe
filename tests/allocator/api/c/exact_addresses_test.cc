// ashlar_allocate_exactly: a request that is served at the address that it names, or not at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ashlar.h"

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::size_t kOneMiB = std::size_t{1} << 20;

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
class ExactAddressTest : public testing::Test {
 protected:
  ExactAddressTest() {
    const ashlar_open_options options = {.struct_size = sizeof(ashlar_open_options),
                                         .conf = "report_leaks:False",
                                         .memory = ASHLAR_MEMORY_SIMULATED,
                                         .device = 0,
                                         .capacity_bytes = 1024 * kOneMiB};
    EXPECT_EQ(ashlar_open(&options, &allocator_), ASHLAR_OK) << ashlar_last_error();
    segment_ = Allocate(30 * kOneMiB);
    ashlar_free(allocator_, segment_);
  }
  ~ExactAddressTest() override { ashlar_close(allocator_); }

  char* Allocate(std::size_t bytes) {
    void* memory = nullptr;
    EXPECT_EQ(ashlar_allocate(allocator_, bytes, nullptr, &memory), ASHLAR_OK) << ashlar_last_error();
    return static_cast<char*>(memory);
  }
  ashlar_status AllocateAt(std::size_t bytes, void* address, ashlar_stream stream = nullptr) {
    return ashlar_allocate_exactly(allocator_, bytes, stream, address);
  }
  // From the lowest address on.
  std::vector<LaidBlock> Blocks() const {
    std::vector<LaidBlock> out;
    EXPECT_EQ(ashlar_visit_segments(allocator_, AddBlocks, &out), ASHLAR_OK);
    return out;
  }
  ashlar_statistics Figures() const {
    ashlar_statistics out{};
    out.struct_size = sizeof(out);
    EXPECT_EQ(ashlar_get_statistics(allocator_, &out), ASHLAR_OK);
    return out;
  }

  ashlar_allocator* allocator_ = nullptr;
  char* segment_ = nullptr;
};

TEST_F(ExactAddressTest, ARequestIsServedInTheMiddleOfFreeMemory) {
  ASSERT_EQ(AllocateAt(8 * kOneMiB - 100, segment_ + 4 * kOneMiB), ASHLAR_OK) << ashlar_last_error();
  EXPECT_THAT(Blocks(), ElementsAre(Free(4 * kOneMiB), Live(8 * kOneMiB), Free(18 * kOneMiB)));
  EXPECT_EQ(Figures().allocated_bytes, 8 * kOneMiB);
  EXPECT_EQ(Figures().device_allocations, 1u);
  EXPECT_EQ(ashlar_free(allocator_, segment_), ASHLAR_INVALID_ARGUMENT) << "what lay below is no block of anybody's";
  ashlar_free(allocator_, segment_ + 4 * kOneMiB);
  EXPECT_THAT(Blocks(), ElementsAre(Free(30 * kOneMiB)));
  EXPECT_EQ(Allocate(30 * kOneMiB), segment_);
}

// Half a MiB is not cut off a large block.
TEST_F(ExactAddressTest, WhatIsLeftAboveGoesByTheRules) {
  const std::size_t half = kOneMiB / 2;
  ASSERT_EQ(AllocateAt(20 * kOneMiB, segment_ + 9 * kOneMiB + half), ASHLAR_OK) << ashlar_last_error();
  EXPECT_THAT(Blocks(), ElementsAre(Free(9 * kOneMiB + half), Live(20 * kOneMiB + half)));
}

TEST_F(ExactAddressTest, AnAddressThatIsNotTheRequestsIsRefused) {
  char* const live = Allocate(40 * kOneMiB);
  ashlar_pool pool{};
  ASSERT_EQ(ashlar_create_pool(allocator_, &pool), ASHLAR_OK);
  const std::vector<LaidBlock> before = Blocks();
  const auto is_refused = [&](std::size_t bytes, void* address, std::uintptr_t stream = 0) {
    const ashlar_status status = AllocateAt(bytes, address, reinterpret_cast<void*>(stream));
    EXPECT_THAT(ashlar_last_error(), HasSubstr("are not free in the request's pool and stream"));
    return status == ASHLAR_INVALID_ARGUMENT;
  };
  EXPECT_TRUE(is_refused(8 * kOneMiB, live));
  EXPECT_TRUE(is_refused(8 * kOneMiB, segment_ + 23 * kOneMiB)) << "it is longer than what is free there";
  EXPECT_TRUE(is_refused(8 * kOneMiB, segment_ + 100)) << "no block begins there";
  EXPECT_TRUE(is_refused(1000, segment_)) << "it is of large blocks";
  EXPECT_TRUE(is_refused(8 * kOneMiB, segment_, 7)) << "it is another stream's";
  EXPECT_TRUE(is_refused(8 * kOneMiB, nullptr));
  EXPECT_TRUE(is_refused(0, segment_));
  EXPECT_TRUE(is_refused(~std::size_t{0}, segment_));
  ASSERT_EQ(ashlar_begin_pool(allocator_, pool, ASHLAR_ROUTE_PLAIN, nullptr, nullptr, nullptr), ASHLAR_OK);
  EXPECT_TRUE(is_refused(8 * kOneMiB, segment_)) << "it is another pool's";
  ASSERT_EQ(ashlar_end_pool(allocator_, pool), ASHLAR_OK);
  EXPECT_EQ(Blocks(), before);
  EXPECT_EQ(AllocateAt(8 * kOneMiB, segment_), ASHLAR_OK);
}

}  // namespace
