// The fake CUDA is the judge of the CUDA device, so it is judged first: each misuse is seen to abort.
#include "tests/fake_cuda/fake_cuda.h"

#include <cstdint>
#include <memory>

#include "gtest/gtest.h"

namespace ashlar::device {
namespace {

constexpr std::uint64_t kPage = 2 * kMiB;

class FakeCudaTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cuda_.PrimaryContextRetain(&first_, 0), kCudaSuccess);
    ASSERT_EQ(cuda_.PrimaryContextRetain(&second_, 1), kCudaSuccess);
    cuda_.MakeCurrent(first_);
  }
  void TearDown() override {
    EXPECT_EQ(cuda_.PrimaryContextRelease(0), kCudaSuccess);
    EXPECT_EQ(cuda_.PrimaryContextRelease(1), kCudaSuccess);
  }
  std::uint64_t Malloc(std::uint64_t size_bytes) {
    std::uint64_t address = 0;
    EXPECT_EQ(cuda_.Malloc(&address, size_bytes), kCudaSuccess);
    return address;
  }
  std::uint64_t Reserve(std::uint64_t size_bytes) {
    std::uint64_t address = 0;
    EXPECT_EQ(cuda_.AddressReserve(&address, size_bytes), kCudaSuccess);
    return address;
  }
  CudaHandle Create() {
    CudaHandle handle{};
    EXPECT_EQ(cuda_.MemCreate(&handle, kPage, {}), kCudaSuccess);
    return handle;
  }

  FakeCuda cuda_{{.device_count = 2, .capacity_bytes = 16 * kMiB}};
  CudaContext first_{};
  CudaContext second_{};
};

using FakeCudaDeathTest = FakeCudaTest;

TEST_F(FakeCudaTest, EachDeviceHasItsCapacity) {
  const std::uint64_t address = Malloc(15 * kMiB);
  std::uint64_t refused = 0;
  EXPECT_EQ(cuda_.Malloc(&refused, 1), kCudaErrorMemoryAllocation);
  EXPECT_EQ(cuda_.GetLastError(), kCudaErrorMemoryAllocation);
  EXPECT_EQ(cuda_.GetLastError(), kCudaSuccess) << "reading clears it";
  cuda_.MakeCurrent(second_);
  EXPECT_EQ(cuda_.Free(Malloc(kPage)), kCudaSuccess);
  EXPECT_EQ(cuda_.Free(address), kCudaSuccess) << "an address says by itself whose it is";
  EXPECT_EQ(cuda_.used_bytes(0) + cuda_.used_bytes(1), 0u);
}

TEST_F(FakeCudaTest, FailsTheCallItWasToldTo) {
  cuda_.FailCall(1, 999);
  const std::uint64_t address = Malloc(kPage);
  EXPECT_EQ(cuda_.Free(address), 999);
  EXPECT_EQ(cuda_.failed_call(), "cudaFree");
  EXPECT_EQ(cuda_.used_bytes(), kPage) << "the call that fails does nothing";
  EXPECT_EQ(cuda_.Free(address), kCudaSuccess) << "only one call fails";
  cuda_.FailFrom(0, 700);
  EXPECT_EQ(cuda_.DeviceSynchronize(), 700);
  EXPECT_EQ(cuda_.DeviceSynchronize(), 700);
  cuda_.StopFailing();
  EXPECT_EQ(cuda_.DeviceSynchronize(), kCudaSuccess);
}

TEST_F(FakeCudaTest, EventsAreDoneWhenTold) {
  CudaEvent event{};
  ASSERT_EQ(cuda_.EventCreate(&event), kCudaSuccess);
  ASSERT_EQ(cuda_.EventRecord(event, Stream{5}), kCudaSuccess);
  EXPECT_EQ(cuda_.EventQuery(event), kCudaErrorNotReady);
  EXPECT_EQ(cuda_.StreamSynchronize(Stream{4}), kCudaSuccess);
  EXPECT_EQ(cuda_.EventQuery(event), kCudaErrorNotReady);
  cuda_.CompleteAllWork();
  EXPECT_EQ(cuda_.EventQuery(event), kCudaSuccess);
  ASSERT_EQ(cuda_.EventRecord(event, Stream{5}), kCudaSuccess);
  EXPECT_EQ(cuda_.EventQuery(event), kCudaErrorNotReady) << "recorded anew";
  EXPECT_EQ(cuda_.EventDestroy(event), kCudaSuccess);
}

TEST_F(FakeCudaDeathTest, SegmentMisuse) {
  const std::uint64_t address = Malloc(kPage);
  ASSERT_EQ(cuda_.Free(address), kCudaSuccess);
  EXPECT_DEATH(cuda_.Free(address), "fake CUDA: cudaFree: .* is not allocated");
  cuda_.MakeCurrent(CudaContext{});
  EXPECT_DEATH(Malloc(kPage), "fake CUDA: cudaMalloc: no device's primary context is current");
}

TEST_F(FakeCudaDeathTest, EventMisuse) {
  CudaEvent event{};
  ASSERT_EQ(cuda_.EventCreate(&event), kCudaSuccess);
  EXPECT_DEATH(cuda_.EventQuery(event), "fake CUDA: cudaEventQuery: this event was never recorded");
  cuda_.MakeCurrent(second_);
  EXPECT_DEATH(cuda_.EventRecord(event, Stream{0}), "fake CUDA: cudaEventRecord: .* belongs to another device");
  cuda_.MakeCurrent(first_);
  ASSERT_EQ(cuda_.EventDestroy(event), kCudaSuccess);
  EXPECT_DEATH(cuda_.EventDestroy(event), "fake CUDA: cudaEventDestroy: .* was destroyed");
}

TEST_F(FakeCudaDeathTest, VirtualMemoryMisuse) {
  const std::uint64_t base = Reserve(2 * kPage);
  const CudaHandle handle = Create();
  EXPECT_DEATH(cuda_.MemUnmap(base, kPage), "fake CUDA: cuMemUnmap: this range is not mapped");
  EXPECT_DEATH(cuda_.MemMap(base + 2 * kPage, kPage, handle), "fake CUDA: cuMemMap: the range is not reserved");
  ASSERT_EQ(cuda_.MemMap(base, kPage, handle), kCudaSuccess);
  EXPECT_FALSE(cuda_.IsAccessible(base));
  EXPECT_DEATH(cuda_.MemMap(base, kPage, handle), "fake CUDA: cuMemMap: the range is mapped");
  EXPECT_DEATH(cuda_.MemSetAccess(base, 2 * kPage, 0), "fake CUDA: cuMemSetAccess: a part of the range is not mapped");
  EXPECT_DEATH(cuda_.MemRelease(handle), "fake CUDA: cuMemRelease: the handle's memory is still mapped");
  EXPECT_DEATH(cuda_.AddressFree(base, 2 * kPage), "fake CUDA: cuMemAddressFree: memory is still mapped");
  ASSERT_EQ(cuda_.MemUnmap(base, kPage), kCudaSuccess);
  ASSERT_EQ(cuda_.MemRelease(handle), kCudaSuccess);
  EXPECT_DEATH(cuda_.MemRelease(handle), "fake CUDA: cuMemRelease: this handle does not exist");
  EXPECT_DEATH(cuda_.AddressFree(base, kPage), "fake CUDA: cuMemAddressFree: this is not a range");
  ASSERT_EQ(cuda_.AddressFree(base, 2 * kPage), kCudaSuccess);
}

TEST_F(FakeCudaDeathTest, ContextMisuse) {
  CudaContext context{};
  EXPECT_DEATH(cuda_.ContextPop(&context), "fake CUDA: cuCtxPopCurrent: no context was pushed");
}

// Each leak, as the last thing that a program does.
TEST(FakeCudaLeakDeathTest, TheEndFindsWhatIsLeft) {
  const auto leave = [](auto leak) {
    FakeCuda cuda{FakeCudaOptions{}};
    CudaContext context{};
    cuda.PrimaryContextRetain(&context, 0);
    cuda.MakeCurrent(context);
    leak(cuda);
    cuda.PrimaryContextRelease(0);
  };
  std::uint64_t address = 0;
  CudaEvent event{};
  CudaHandle handle{};
  CudaContext context{};
  EXPECT_DEATH(leave([&](FakeCuda& cuda) { cuda.Malloc(&address, 1); }), "1 ranges of cudaMalloc are not freed");
  EXPECT_DEATH(leave([&](FakeCuda& cuda) { cuda.EventCreate(&event); }), "1 events are not destroyed");
  EXPECT_DEATH(leave([&](FakeCuda& cuda) { cuda.MemCreate(&handle, kPage, {}); }), "1 handles are not released");
  EXPECT_DEATH(leave([&](FakeCuda& cuda) { cuda.AddressReserve(&address, kPage); }), "1 address ranges are not freed");
  EXPECT_DEATH(leave([&](FakeCuda& cuda) { cuda.PrimaryContextRetain(&context, 0); }), "context is retained");
  leave([](FakeCuda&) {});
}

}  // namespace
}  // namespace ashlar::device
