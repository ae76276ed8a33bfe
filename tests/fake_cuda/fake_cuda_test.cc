// The fake CUDA is the judge of the CUDA device, so it is judged first: each misuse is seen to abort.
#include "tests/fake_cuda/fake_cuda.h"

#include <cstdint>
#include <memory>

#include "gtest/gtest.h"

namespace ashlar::device {
namespace {

constexpr std::uint64_t kPage = 2 * kMiB;
const auto kStream = reinterpret_cast<CudaStream>(5);

class FakeCudaTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(Retain(&first_, 0), kCudaSuccess);
    ASSERT_EQ(Retain(&second_, 1), kCudaSuccess);
    cuda_.MakeCurrent(first_);
  }
  void TearDown() override {
    EXPECT_EQ(cuda_.PrimaryRelease(device_of_[0]), kCudaSuccess);
    EXPECT_EQ(cuda_.PrimaryRelease(device_of_[1]), kCudaSuccess);
  }
  int Retain(CudaContext* context, int ordinal) {
    EXPECT_EQ(cuda_.DeviceGet(&device_of_[ordinal], ordinal), kCudaSuccess);
    return cuda_.PrimaryRetain(context, device_of_[ordinal]);
  }
  std::uint64_t Malloc(std::uint64_t size_bytes) {
    std::uint64_t address = 0;
    EXPECT_EQ(cuda_.MemAlloc(&address, size_bytes), kCudaSuccess);
    return address;
  }
  std::uint64_t Reserve(std::uint64_t size_bytes) {
    std::uint64_t address = 0;
    EXPECT_EQ(cuda_.MemAddressReserve(&address, size_bytes, 0), kCudaSuccess);
    return address;
  }
  CudaHandle Create() {
    CudaHandle handle{};
    EXPECT_EQ(cuda_.MemCreate(&handle, kPage, {}), kCudaSuccess);
    return handle;
  }

  FakeCuda cuda_{{.device_count = 2, .capacity_bytes = 16 * kMiB}};
  CudaDeviceId device_of_[2] = {};
  CudaContext first_ = nullptr;
  CudaContext second_ = nullptr;
};

using FakeCudaDeathTest = FakeCudaTest;

TEST_F(FakeCudaTest, EachDeviceHasItsCapacity) {
  const std::uint64_t address = Malloc(15 * kMiB);
  std::uint64_t refused = 0;
  EXPECT_EQ(cuda_.MemAlloc(&refused, 1), kCudaErrorOutOfMemory);
  cuda_.MakeCurrent(second_);
  EXPECT_EQ(cuda_.MemFree(Malloc(kPage)), kCudaSuccess);
  EXPECT_EQ(cuda_.MemFree(address), kCudaSuccess) << "an address says by itself whose it is";
  EXPECT_EQ(cuda_.used_bytes(0) + cuda_.used_bytes(1), 0u);
}

TEST_F(FakeCudaTest, FailsTheCallItWasToldTo) {
  cuda_.FailCall(1, 999);
  const std::uint64_t address = Malloc(kPage);
  EXPECT_EQ(cuda_.MemFree(address), 999);
  EXPECT_EQ(cuda_.failed_call(), "cuMemFree");
  EXPECT_EQ(cuda_.used_bytes(), kPage) << "the call that fails does nothing";
  EXPECT_EQ(cuda_.MemFree(address), kCudaSuccess) << "only one call fails";
  cuda_.FailFrom(0, 700);
  EXPECT_EQ(cuda_.ContextSynchronize(), 700);
  EXPECT_EQ(cuda_.ContextSynchronize(), 700);
  cuda_.StopFailing();
  EXPECT_EQ(cuda_.ContextSynchronize(), kCudaSuccess);
}

TEST_F(FakeCudaTest, EventsAreDoneWhenTold) {
  CudaEvent event = nullptr;
  ASSERT_EQ(cuda_.EventCreate(&event, kCudaEventDisableTiming), kCudaSuccess);
  ASSERT_EQ(cuda_.EventRecord(event, kStream), kCudaSuccess);
  EXPECT_EQ(cuda_.EventQuery(event), kCudaErrorNotReady);
  EXPECT_EQ(cuda_.StreamSynchronize(nullptr), kCudaSuccess);
  EXPECT_EQ(cuda_.EventQuery(event), kCudaErrorNotReady);
  cuda_.CompleteAllWork();
  EXPECT_EQ(cuda_.EventQuery(event), kCudaSuccess);
  ASSERT_EQ(cuda_.EventRecord(event, kStream), kCudaSuccess);
  EXPECT_EQ(cuda_.EventQuery(event), kCudaErrorNotReady) << "recorded anew";
  EXPECT_EQ(cuda_.EventDestroy(event), kCudaSuccess);
}

TEST_F(FakeCudaDeathTest, SegmentMisuse) {
  const std::uint64_t address = Malloc(kPage);
  ASSERT_EQ(cuda_.MemFree(address), kCudaSuccess);
  EXPECT_DEATH(cuda_.MemFree(address), "fake CUDA: cuMemFree: .* is not allocated");
  cuda_.MakeCurrent(nullptr);
  EXPECT_DEATH(Malloc(kPage), "fake CUDA: cuMemAlloc: no device's primary context is current");
}

TEST_F(FakeCudaDeathTest, EventMisuse) {
  CudaEvent event = nullptr;
  ASSERT_EQ(cuda_.EventCreate(&event, kCudaEventDisableTiming), kCudaSuccess);
  EXPECT_DEATH(cuda_.EventQuery(event), "fake CUDA: cuEventQuery: this event was never recorded");
  cuda_.MakeCurrent(second_);
  EXPECT_DEATH(cuda_.EventRecord(event, nullptr), "fake CUDA: cuEventRecord: .* belongs to another device");
  cuda_.MakeCurrent(first_);
  ASSERT_EQ(cuda_.EventDestroy(event), kCudaSuccess);
  EXPECT_DEATH(cuda_.EventDestroy(event), "fake CUDA: cuEventDestroy: .* was destroyed");
}

TEST_F(FakeCudaDeathTest, VirtualMemoryMisuse) {
  const std::uint64_t base = Reserve(2 * kPage);
  const CudaHandle handle = Create();
  EXPECT_DEATH(cuda_.MemUnmap(base, kPage), "fake CUDA: cuMemUnmap: this range is not mapped");
  EXPECT_DEATH(cuda_.MemMap(base + 2 * kPage, kPage, 0, handle), "fake CUDA: cuMemMap: the range is not reserved");
  ASSERT_EQ(cuda_.MemMap(base, kPage, 0, handle), kCudaSuccess);
  EXPECT_FALSE(cuda_.IsAccessible(base));
  EXPECT_DEATH(cuda_.MemMap(base, kPage, 0, handle), "fake CUDA: cuMemMap: the range is mapped");
  EXPECT_DEATH(cuda_.MemSetAccess(base, 2 * kPage, CudaAccess{}),
               "fake CUDA: cuMemSetAccess: a part of the range is not mapped");
  EXPECT_DEATH(cuda_.MemRelease(handle), "fake CUDA: cuMemRelease: the handle's memory is still mapped");
  EXPECT_DEATH(cuda_.MemAddressFree(base, 2 * kPage), "fake CUDA: cuMemAddressFree: memory is still mapped");
  ASSERT_EQ(cuda_.MemUnmap(base, kPage), kCudaSuccess);
  ASSERT_EQ(cuda_.MemRelease(handle), kCudaSuccess);
  EXPECT_DEATH(cuda_.MemRelease(handle), "fake CUDA: cuMemRelease: this handle does not exist");
  EXPECT_DEATH(cuda_.MemAddressFree(base, kPage), "fake CUDA: cuMemAddressFree: this is not a range");
  ASSERT_EQ(cuda_.MemAddressFree(base, 2 * kPage), kCudaSuccess);
}

TEST_F(FakeCudaDeathTest, ContextMisuse) {
  CudaContext context = nullptr;
  EXPECT_DEATH(cuda_.ContextPop(&context), "fake CUDA: cuCtxPopCurrent: no context was pushed");
}

// Each leak, as the last thing that a program does.
TEST(FakeCudaLeakDeathTest, TheEndFindsWhatIsLeft) {
  const auto leave = [](auto leak) {
    FakeCuda cuda{FakeCudaOptions{}};
    CudaContext context = nullptr;
    CudaDeviceId device = 0;
    cuda.DeviceGet(&device, 0);
    cuda.PrimaryRetain(&context, device);
    cuda.MakeCurrent(context);
    leak(cuda);
    cuda.PrimaryRelease(device);
  };
  std::uint64_t address = 0;
  CudaEvent event = nullptr;
  CudaHandle handle{};
  CudaContext context = nullptr;
  EXPECT_DEATH(leave([&](FakeCuda& cuda) { cuda.MemAlloc(&address, 1); }), "1 ranges of cuMemAlloc are not freed");
  EXPECT_DEATH(leave([&](FakeCuda& cuda) { cuda.EventCreate(&event, kCudaEventDisableTiming); }),
               "1 events are not destroyed");
  EXPECT_DEATH(leave([&](FakeCuda& cuda) { cuda.MemCreate(&handle, kPage, {}); }), "1 handles are not released");
  EXPECT_DEATH(leave([&](FakeCuda& cuda) { cuda.MemAddressReserve(&address, kPage, 0); }),
               "1 address ranges are not freed");
  EXPECT_DEATH(leave([&](FakeCuda& cuda) {
                 CudaDeviceId device = 0;
                 cuda.DeviceGet(&device, 0);
                 cuda.PrimaryRetain(&context, device);
               }),
               "context is retained");
  leave([](FakeCuda&) {});
}

}  // namespace
}  // namespace ashlar::device
