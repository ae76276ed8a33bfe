// The CUDA device over the fake CUDA: the contract of every device, the calls that it makes, and whose context they are
// made in. cuda_device_failure_test.cc has what it does when they fail, cuda_driver_test.cc the drivers that it serves,
// cuda_gpu_test.cc the contract on a GPU.
#include "allocator/device/cuda_device.h"

#include <fcntl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "tests/allocator/device/device_contract.h"
#include "tests/fake_cuda/fake_cuda.h"

namespace ashlar::device {
namespace {

constexpr std::uint64_t kCudaDevicePage = 2 * kMiB;

TestedDevice Tested(FakeCudaOptions options, int ordinal, std::uint64_t page_bytes) {
  const bool waits = !options.events_complete_immediately;
  auto cuda = std::make_shared<FakeCuda>(std::move(options));
  std::unique_ptr<Device> device = *CudaDevice::Open({.ordinal = ordinal});
  FakeCuda* fake = cuda.get();
  return {.world = std::move(cuda),
          .device = std::move(device),
          .page_bytes = page_bytes,
          .streams = {Stream{0}, Stream{7}},
          .finish_work = [fake] { fake->CompleteAllWork(); },
          .work_waits = waits};
}

TestedDevice MakeCuda() { return Tested({}, 0, kCudaDevicePage); }
TestedDevice MakeSecondOfThree() {
  return Tested({.device_count = 3, .capacity_bytes = kGiB + 12345}, 1, 2 * kCudaDevicePage);
}
TestedDevice MakeImmediate() {
  return Tested({.capacity_bytes = 64 * 64 * kKiB, .granularity_bytes = 64 * kKiB, .events_complete_immediately = true},
                0, 64 * kKiB);
}

INSTANTIATE_TEST_SUITE_P(CudaOverFake, DeviceContractTest,
                         testing::Values(DeviceMaker{"only_device", MakeCuda},
                                         DeviceMaker{"second_of_three", MakeSecondOfThree},
                                         DeviceMaker{"immediate", MakeImmediate}));

std::unique_ptr<CudaDevice> Open(int ordinal = 0) { return *CudaDevice::Open({.ordinal = ordinal}); }

TEST(CudaDeviceTest, OpensOnlyADeviceThatIsThere) {
  FakeCuda cuda({.device_count = 2});
  EXPECT_TRUE(absl::IsInvalidArgument(CudaDevice::Open({.ordinal = 2}).status()));
  const absl::Status status = CudaDevice::Open({.ordinal = -1}).status();
  EXPECT_EQ(status.message(), "there is no CUDA device -1: 2 are visible, counted from 0");
}

TEST(CudaDeviceTest, OptionsAreAskedForAndPassedOn) {
  FakeCuda cuda({.device_count = 2});
  const CudaDeviceOptions all{.ordinal = 1, .posix_fd_handles = true, .fabric_handles = true, .gpu_direct_rdma = true};
  const std::unique_ptr<CudaDevice> device = *CudaDevice::Open(all);
  const std::uint64_t base = *device->Reserve(kCudaDevicePage);
  ASSERT_TRUE(device->Map(base, kCudaDevicePage, kCudaDevicePage).ok());
  EXPECT_EQ(cuda.last_kind().location.ordinal, 1);
  EXPECT_EQ(cuda.last_kind().handle_types, kCudaHandlePosixFd | kCudaHandleFabric);
  EXPECT_EQ(cuda.last_kind().is_gpu_direct_rdma_capable, 1);
  const std::unique_ptr<CudaDevice> plain = Open();
  const std::uint64_t other = *plain->Reserve(kCudaDevicePage);
  ASSERT_TRUE(plain->Map(other, kCudaDevicePage, kCudaDevicePage).ok());
  EXPECT_EQ(cuda.last_kind().handle_types, 0);
  EXPECT_EQ(cuda.last_kind().is_gpu_direct_rdma_capable, 0);
}

TEST(CudaDeviceTest, APageIsExportedOnceAndItsDescriptorGoesWithIt) {
  FakeCuda cuda({});
  cuda.MakeCurrent(cuda.ContextOf(0));
  const std::unique_ptr<CudaDevice> device = *CudaDevice::Open({.posix_fd_handles_if_granted = true});
  const std::uint64_t base = *device->Reserve(2 * kCudaDevicePage);
  ASSERT_TRUE(device->Map(base, 2 * kCudaDevicePage, kCudaDevicePage).ok());
  const int file = *device->ExportPage(base);
  EXPECT_NE(*device->ExportPage(base + kCudaDevicePage), file);
  EXPECT_EQ(*device->ExportPage(base), file);
  EXPECT_EQ(cuda.calls_of("cuMemExportToShareableHandle"), 2u);
  EXPECT_TRUE(absl::IsInvalidArgument(device->ExportPage(base + 512).status())) << "no page begins there";
  cuda.FailWork(0, 999);
  EXPECT_EQ(device->Unmap(base, kCudaDevicePage, kCudaDevicePage).code(), absl::StatusCode::kInternal);
  EXPECT_GE(fcntl(file, F_GETFD), 0) << "the page is still mapped";
  ASSERT_TRUE(device->Reserve(kCudaDevicePage).ok()) << "leftovers are tried again";
  EXPECT_LT(fcntl(file, F_GETFD), 0);
}

TEST(CudaDeviceTest, WhereSharedPagesAreNotGrantedThereAreOthers) {
  FakeCuda cuda({});
  cuda.MakeCurrent(cuda.ContextOf(0));
  const std::unique_ptr<CudaDevice> device = *CudaDevice::Open({.posix_fd_handles_if_granted = true});
  const std::uint64_t base = *device->Reserve(kCudaDevicePage);
  cuda.FailWork(0, kCudaErrorNotPermitted);
  ASSERT_TRUE(device->Map(base, kCudaDevicePage, kCudaDevicePage).ok());
  EXPECT_EQ(cuda.last_kind().handle_types, 0);
  EXPECT_EQ(device->ExportPage(base).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(CudaDeviceTest, WhoAsksForSharedPagesGetsNoOthers) {
  FakeCuda cuda({});
  cuda.MakeCurrent(cuda.ContextOf(0));
  const std::unique_ptr<CudaDevice> device = *CudaDevice::Open({.posix_fd_handles = true});
  const std::uint64_t base = *device->Reserve(kCudaDevicePage);
  cuda.FailWork(0, kCudaErrorNotPermitted);
  EXPECT_FALSE(device->Map(base, kCudaDevicePage, kCudaDevicePage).ok());
}

TEST(CudaDeviceTest, OptionsThatTheDeviceLacks) {
  const auto open = [](CudaAttribute lacks, const CudaDeviceOptions& options) {
    FakeCuda cuda({.lacks = {lacks}});
    return CudaDevice::Open(options).status();
  };
  EXPECT_TRUE(absl::IsFailedPrecondition(open(CudaAttribute::kPosixFdHandles, {.posix_fd_handles = true})));
  EXPECT_TRUE(absl::IsFailedPrecondition(open(CudaAttribute::kFabricHandles, {.fabric_handles = true})));
  EXPECT_EQ(open(CudaAttribute::kGpuDirectRdmaWithVmm, {.gpu_direct_rdma = true}).message(),
            "CUDA device 0 has no GPUDirect RDMA to mapped memory");
}

TEST(CudaDeviceTest, SegmentsNeedNoVirtualMemoryManagement) {
  FakeCuda cuda({.lacks = {CudaAttribute::kVirtualMemoryManagement}});
  const std::unique_ptr<CudaDevice> device = Open();
  EXPECT_EQ(device->granularity_bytes(), 0u);
  EXPECT_EQ(device->Reserve(kCudaDevicePage).status(),
            absl::UnimplementedError(
                "CUDA device 0 has no virtual memory management: leave out expandable_segments and policy:ashlar"));
  EXPECT_TRUE(device->AllocateSegment(kCudaDevicePage).ok());
}

TEST(CudaDeviceTest, MappedPagesAreAccessible) {
  FakeCuda cuda{FakeCudaOptions{}};
  const std::unique_ptr<CudaDevice> device = Open();
  const std::uint64_t base = *device->Reserve(8 * kCudaDevicePage);
  ASSERT_TRUE(device->Map(base + kCudaDevicePage, 3 * kCudaDevicePage, kCudaDevicePage).ok());
  for (const std::uint64_t page : {1, 2, 3}) EXPECT_TRUE(cuda.IsAccessible(base + page * kCudaDevicePage + 5)) << page;
  EXPECT_FALSE(cuda.IsAccessible(base) || cuda.IsAccessible(base + 4 * kCudaDevicePage));
  EXPECT_EQ(cuda.calls_of("cuMemCreate"), 3u) << "a handle a page";
  EXPECT_EQ(cuda.calls_of("cuMemSetAccess"), 1u) << "one for the range";
}

TEST(CudaDeviceTest, EveryCallLeavesTheThreadsContextAsItWas) {
  FakeCuda cuda({.device_count = 3});
  const auto foreign = reinterpret_cast<CudaContext>(77);  // of somebody else, and no device's primary context
  for (const CudaContext before : {CudaContext{nullptr}, foreign, cuda.ContextOf(1)}) {
    cuda.MakeCurrent(before);
    const std::unique_ptr<CudaDevice> device = Open(1);
    const std::uint64_t segment = *device->AllocateSegment(kCudaDevicePage);
    EXPECT_EQ(cuda.current(), before);
    const std::uint64_t base = *device->Reserve(kCudaDevicePage);
    EXPECT_EQ(cuda.current(), before);
    ASSERT_TRUE(device->Map(base, kCudaDevicePage, kCudaDevicePage).ok());
    EXPECT_EQ(cuda.current(), before);
    EXPECT_EQ(device->GetMemoryInfo().free_bytes, kGiB - 2 * kCudaDevicePage);
    const DeviceEvent event = device->RecordEvent(Stream{9});
    EXPECT_FALSE(device->QueryEvent(event));
    EXPECT_EQ(cuda.current(), before);
    ASSERT_TRUE(device->SynchronizeEvent(event).ok());
    ASSERT_TRUE(device->SynchronizeStream(Stream{9}).ok());
    ASSERT_TRUE(device->Unmap(base, kCudaDevicePage, kCudaDevicePage).ok());
    ASSERT_TRUE(device->FreeSegment(segment).ok());
    EXPECT_EQ(cuda.current(), before);
    EXPECT_FALSE(cuda.HasContext(0) || cuda.HasContext(2)) << "no context on a device that nobody asked for";
  }
}

TEST(CudaDeviceTest, NothingIsPushedWhereTheDeviceIsCurrent) {
  FakeCuda cuda({.device_count = 2});
  cuda.MakeCurrent(cuda.ContextOf(1));
  const std::unique_ptr<CudaDevice> device = Open(1);
  ASSERT_TRUE(device->AllocateSegment(kCudaDevicePage).ok());
  EXPECT_EQ(cuda.calls_of("cuCtxPushCurrent"), 0u);
  cuda.MakeCurrent(cuda.ContextOf(0));
  ASSERT_TRUE(device->AllocateSegment(kCudaDevicePage).ok());
  EXPECT_EQ(cuda.calls_of("cuCtxPushCurrent"), 1u);
  EXPECT_EQ(cuda.calls_of("cuCtxPopCurrent"), 1u);
}

TEST(CudaDeviceTest, DevicesAreApart) {
  FakeCuda cuda({.device_count = 2, .capacity_bytes = 8 * kCudaDevicePage});
  const std::unique_ptr<CudaDevice> first = Open(0);
  const std::unique_ptr<CudaDevice> second = Open(1);
  ASSERT_TRUE(first->AllocateSegment(8 * kCudaDevicePage).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(first->AllocateSegment(kCudaDevicePage).status()));
  EXPECT_TRUE(second->AllocateSegment(8 * kCudaDevicePage).ok());
  const DeviceEvent of_first = first->RecordEvent(Stream{3});
  const DeviceEvent of_second = second->RecordEvent(Stream{4});
  cuda.CompleteAllWork();
  EXPECT_TRUE(first->QueryEvent(of_first) && second->QueryEvent(of_second));
}

TEST(CudaDeviceTest, EventsArePooled) {
  FakeCuda cuda{FakeCudaOptions{}};
  const std::unique_ptr<CudaDevice> device = Open();
  for (int round = 0; round < 100; ++round) {
    const DeviceEvent first = device->RecordEvent(Stream{1});
    const DeviceEvent second = device->RecordEvent(Stream{1});
    EXPECT_FALSE(device->QueryEvent(first));
    cuda.CompleteAllWork();
    EXPECT_TRUE(device->QueryEvent(second) && device->QueryEvent(first));
  }
  EXPECT_EQ(cuda.live_events(), 2u);
}

TEST(CudaDeviceTest, AStreamThatWasDestroyedIsTheDevicesWork) {
  FakeCuda cuda{FakeCudaOptions{}};
  const std::unique_ptr<CudaDevice> device = Open();
  const DeviceEvent before = device->RecordEvent(Stream{5});
  cuda.DestroyStream(Stream{5});
  const DeviceEvent after = device->RecordEvent(Stream{5});
  EXPECT_EQ(cuda.calls_of("cuCtxSynchronize"), 1u);
  EXPECT_TRUE(device->QueryEvent(before) && device->QueryEvent(after));
  EXPECT_TRUE(device->SynchronizeStream(Stream{5}).ok());
}

TEST(CudaDeviceTest, AStreamOfAnotherDeviceIsWaitedFor) {
  FakeCuda cuda({.device_count = 2});
  const std::unique_ptr<CudaDevice> device = Open();
  cuda.PutStreamOn(Stream{5}, 1);
  const DeviceEvent event = device->RecordEvent(Stream{5});
  EXPECT_EQ(cuda.calls_of("cuStreamSynchronize"), 1u);
  EXPECT_TRUE(device->QueryEvent(event));
  EXPECT_EQ(cuda.live_events(), 1u) << "in the pool";
}

TEST(CudaDeviceTest, DestructionReturnsEverything) {
  FakeCuda cuda({.device_count = 2});
  {
    const std::unique_ptr<CudaDevice> device = Open(1);
    ASSERT_TRUE(device->AllocateSegment(kCudaDevicePage).ok());
    const std::uint64_t base = *device->Reserve(8 * kCudaDevicePage);
    ASSERT_TRUE(device->Map(base, 2 * kCudaDevicePage, kCudaDevicePage).ok());
    device->RecordEvent(Stream{2});
    EXPECT_EQ(cuda.used_bytes(1), 3 * kCudaDevicePage);
  }
  EXPECT_EQ(cuda.used_bytes(1), 0u);
  EXPECT_EQ(cuda.live_events() + cuda.live_reservations(), 0u);
  EXPECT_FALSE(cuda.HasContext(1));
}

TEST(CudaDeviceDeathTest, Misuse) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";  // in a forked child the device would be lost
  FakeCuda cuda{FakeCudaOptions{}};
  const std::unique_ptr<CudaDevice> device = Open();
  EXPECT_DEATH(device->FreeSegment(kCudaDevicePage).IgnoreError(), "cuda_device");
  const std::uint64_t base = *device->Reserve(2 * kCudaDevicePage);
  EXPECT_DEATH(device->Map(base + kCudaDevicePage, 2 * kCudaDevicePage, kCudaDevicePage).IgnoreError(), "cuda_vmm");
  EXPECT_DEATH(device->Unmap(base, kCudaDevicePage, kCudaDevicePage).IgnoreError(), "cuda_vmm");
  ASSERT_TRUE(device->Map(base, kCudaDevicePage, kCudaDevicePage).ok());
  EXPECT_DEATH(device->Map(base, kCudaDevicePage, kCudaDevicePage).IgnoreError(), "cuda_vmm");
}

}  // namespace
}  // namespace ashlar::device
