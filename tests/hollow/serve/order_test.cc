// Which block is served while work is not done, and what is left to the driver.
#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "tests/hollow/serve/served_client.h"

namespace ashlar {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr char kLag[] = "lag_ns=1000000000\n";  // work is done when it is waited for, or a second of calls later

ClientRun RunOrder(const std::string& arguments, const std::string& machine = kLag) {
  ClientRun out = RunServed({.client = ASHLAR_ORDER_CLIENT, .arguments = arguments, .machine = machine});
  EXPECT_EQ(out.code, 0) << out.out << out.error;
  return out;
}

TEST(OrderTest, AFreeWaitsAndItsBlockIsAnyones) {
  EXPECT_EQ(RunOrder("free-waits").out, "is working 1\nfree 0\nis done 0\nthe same block 1\n");
}

TEST(OrderTest, BlocksAreReusedInTheOrderOfTheirStream) {
  EXPECT_EQ(RunOrder("stream-order").out,
            "in order at once 1\nis still working 1\nanother stream has another 1\nin order 1\nit waits 1\n"
            "it is back 1\n");
}

TEST(OrderTest, MemoryForEveryStreamIsNeverTheDefaultStreams) {
  EXPECT_EQ(RunOrder("default-stream").out, "cudaMalloc has another 1\nin order 1\nit waits 1\nit is back 1\n");
}

TEST(OrderTest, AHandleThatIsUsedAgainIsAnotherStream) {
  EXPECT_EQ(RunOrder("handles").out, "has the handle again 1\nis working 1\nthe old block 1\nis done 0\n");
}

TEST(OrderTest, WhatIsFreedInACaptureComesBackAfterIt) {
  EXPECT_EQ(RunOrder("relaxed-capture").out, "free 0\nthe driver's 1\nend 0\nit is back 1\nis done 0\nfree 0\n");
}

TEST(OrderTest, OtherDevicesAreWaitedForWhereTheyMayUseTheMemory) {
  EXPECT_EQ(RunOrder("other-devices").out,
            "of the stream's device 1\nis working 1\nfree on a stream of another device 0\nis done 0\nis working 1\n"
            "without peers 0\nis working 1\n"
            "peers 0\nfree 0\nis done 0\n");
}

TEST(OrderTest, AProgramWithPoolsKeepsThem) {
  const ClientRun run = RunOrder("pools", "");
  EXPECT_EQ(run.out, "free 0\npool 0\nthe driver's 1\nfree 0\n");
  EXPECT_THAT(run.error, HasSubstr("ashlar: the program manages CUDA's memory pools itself"));
  ASSERT_THAT(run.counts, SizeIs(1));
  EXPECT_EQ(run.counts[0].served_allocations, 1u);
  EXPECT_EQ(run.counts[0].passed_allocations, 1u);
}

TEST(OrderTest, TheStreamOfEachThreadIsTheDrivers) {
  const ClientRun run = RunOrder("per-thread", "");
  EXPECT_EQ(run.out, "allocate 0\nfree 0\nfree of cudaMalloc 0\n");
  ASSERT_THAT(run.counts, SizeIs(1));
  EXPECT_EQ(run.counts[0].served_allocations, 1u);
  EXPECT_EQ(run.counts[0].passed_allocations, 1u);
  EXPECT_EQ(run.counts[0].allocated_bytes, 0u);
}

TEST(OrderTest, AHandleForOtherProcessesIsRefusedInOneLine) {
  const ClientRun run = RunOrder("ipc", "");
  EXPECT_THAT(run.out, HasSubstr("runtime 801\ndriver 801\nattribute 0\nis capable 0\nlast error 0\n"));
  EXPECT_THAT(run.out, HasSubstr("of the driver's own 0\nruntime 0\n"));
  EXPECT_THAT(run.error, HasSubstr("ashlar: cudaIpcGetMemHandle is refused: "));
  EXPECT_EQ(std::count(run.error.begin(), run.error.end(), '\n'), 1);
}

TEST(OrderTest, PyTorchIsLeftAlone) {
  const ClientRun first = RunOrder(std::string("torch ") + ASHLAR_FAKE_TORCH, "");
  EXPECT_EQ(first.out, "free 0\n");
  EXPECT_THAT(first.error, HasSubstr("ashlar: PyTorch is in this process"));
  ASSERT_THAT(first.counts, SizeIs(1));
  EXPECT_EQ(first.counts[0].served_allocations, 0u);
  EXPECT_EQ(first.counts[0].has_torch, 1u);
  const ClientRun late = RunOrder(std::string("late-torch ") + ASHLAR_FAKE_TORCH, "");
  EXPECT_EQ(late.out, "free 0\nfree 0\n");
  ASSERT_THAT(late.counts, SizeIs(1));
  EXPECT_EQ(late.counts[0].served_allocations, 1u);
  EXPECT_EQ(late.counts[0].served_frees, 1u);
}

TEST(OrderTest, FunctionsThatAreHandedOutAreServedToo) {
  const ClientRun run = RunOrder(std::string("handed ") + ASHLAR_HOLLOW_DRIVER, "");
  EXPECT_EQ(run.out,
            "itself 0\ncuMemAlloc 0\ncuMemFree 0\ncuMemAllocAsync 0\ncuMemAllocAsync 0\ndiffer 1\nallocate 0\nfree 0\n"
            "allocate 0\nthe same block 1\non a stream 0\nof a thread 0\n");
  ASSERT_THAT(run.counts, SizeIs(1));
  EXPECT_EQ(run.counts[0].served_allocations, 3u);
  EXPECT_EQ(run.counts[0].passed_allocations, 1u);
  EXPECT_THAT(run.error, IsEmpty());
}

TEST(OrderTest, OneAllocatorForAllIntegrationsWhoseOwnCallsAreTheDrivers) {
  const ClientRun run = RunOrder(std::string("other-integration ") + ASHLAR_C_LIBRARY, "");
  EXPECT_EQ(run.out, "open 0\nallocate 0\nfree 0\none pool 1\nallocate 0\nfree 0\n");
  ASSERT_THAT(run.counts, SizeIs(1));
  EXPECT_EQ(run.counts[0].served_allocations, 1u);
  EXPECT_EQ(run.counts[0].passed_allocations, 0u);
}

TEST(OrderTest, BlocksOfOtherStreamsAreNotBorrowed) {
  const ClientRun run = RunServed({.client = ASHLAR_ORDER_CLIENT,
                                   .arguments = "free-waits",
                                   .environment = "ASHLAR_CONF=borrow_across_streams:True"});
  EXPECT_THAT(run.error, HasSubstr("ashlar: device 0 is not served: borrow_across_streams"));
  ASSERT_THAT(run.counts, SizeIs(1));
  EXPECT_EQ(run.counts[0].served_allocations, 0u);
}

}  // namespace
}  // namespace ashlar
