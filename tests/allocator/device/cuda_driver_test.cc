// The drivers that the CUDA device serves, and those that it does not: each a libcuda.so.1 of the fake CUDA, in a
// folder that LD_LIBRARY_PATH names, so that it is looked up as the real one is. tests/allocator/device/CMakeLists.txt
// runs the tests of each in a process of its own; ASHLAR_TEST_DRIVER has the version of one that is served.
#include "allocator/device/cuda_driver.h"

#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "allocator/core/caching_allocator.h"
#include "allocator/device/cuda_device.h"
#include "allocator/device/sim_device.h"
#include "gtest/gtest.h"
#include "tests/allocator/device/device_contract.h"

namespace ashlar::device {
namespace {

constexpr std::uint64_t kPage = 2 * kMiB;

std::string Version() {
  const char* const version = std::getenv("ASHLAR_TEST_DRIVER");
  return version == nullptr ? "" : version;
}
bool HasContextIds() { return Version() >= "12.0"; }

TestedDevice MakeFound() {
  absl::StatusOr<std::unique_ptr<CudaDevice>> device = CudaDevice::Open({.ordinal = 0});
  if (!device.ok()) {
    ADD_FAILURE() << device.status();
    return {.device = std::make_unique<SimDevice>(SimDeviceOptions{}), .skip_reason = "no device"};
  }
  return {.device = *std::move(device), .page_bytes = kPage, .streams = {Stream{0}, Stream{7}}, .finish_work = [] {}};
}

INSTANTIATE_TEST_SUITE_P(CudaDriverServed, DeviceContractTest, testing::Values(DeviceMaker{"found", MakeFound}));

// A call of the driver as another part of the program makes it.
template <typename... Args>
int Call(const char* exported, Args... args) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  const auto function = reinterpret_cast<int (*)(Args...)>(dlsym(library, exported));
  EXPECT_NE(function, nullptr) << exported;
  return function == nullptr ? -1 : function(args...);
}

// As cudaDeviceReset does, and as the runtime's next call makes the context anew.
void Reset(bool is_remade) {
  CudaDeviceId device = 0;
  CudaContext context = nullptr;
  ASSERT_EQ(Call("cuDeviceGet", &device, 0), kCudaSuccess);
  ASSERT_EQ(Call("cuDevicePrimaryCtxReset_v2", device), kCudaSuccess);
  if (is_remade) {
    ASSERT_EQ(Call("cuDevicePrimaryCtxRetain", &context, device), kCudaSuccess);
  }
}

TEST(CudaDriverServed, IsTheOneThatWasNamed) {
  const absl::StatusOr<const CudaDriver*> driver = SystemCudaDriver();
  ASSERT_TRUE(driver.ok()) << driver.status();
  EXPECT_EQ((*driver)->VersionText(), Version());
  EXPECT_EQ((*driver)->context_get_id.is_there(), HasContextIds());
  EXPECT_EQ((*driver)->lookup.missing(CudaNeed::kAlways), "");
  EXPECT_EQ((*driver)->lookup.missing(CudaNeed::kVirtualMemory), "");
}

TEST(CudaDriverServed, AnAllocatorRuns) {
  const std::unique_ptr<CudaDevice> device = *CudaDevice::Open({.ordinal = 0});
  for (const char* conf : {"", "expandable_segments:True"}) {
    core::CachingAllocator allocator(device.get(), *policy::ParseConf(conf, policy::Compat::kTorch210));
    core::Block* block = *allocator.Allocate(30 * kMiB, Stream{0});
    allocator.RecordStream(block, Stream{7});
    allocator.Free(block);
    EXPECT_TRUE(absl::IsResourceExhausted(allocator.Allocate(2 * kGiB, Stream{0}).status())) << conf;
    allocator.EmptyCache();
    EXPECT_EQ(allocator.TakeDeviceError(), absl::OkStatus()) << conf;
    EXPECT_EQ(device->GetMemoryInfo().free_bytes, kGiB) << conf;
  }
}

TEST(CudaDriverServed, AResetIsSeen) {
  const std::unique_ptr<CudaDevice> device = *CudaDevice::Open({.ordinal = 0});
  ASSERT_TRUE(device->AllocateSegment(kPage).ok());
  Reset(false);
  EXPECT_TRUE(absl::IsDataLoss(device->AllocateSegment(kPage).status()));
  EXPECT_NE(device->Lost().message().find("cudaDeviceReset"), absl::string_view::npos) << device->Lost();
}

// Before CUDA 12.0 a context has no number: one that was made anew looks like the one before.
TEST(CudaDriverServed, AResetBehindOurBackIsSeenByTheContextsNumber) {
  const std::unique_ptr<CudaDevice> device = *CudaDevice::Open({.ordinal = 0});
  Reset(true);
  const absl::StatusOr<std::uint64_t> segment = device->AllocateSegment(kPage);
  EXPECT_EQ(absl::IsDataLoss(segment.status()), HasContextIds()) << segment.status();
  EXPECT_EQ(segment.ok(), !HasContextIds()) << segment.status();
  if (HasContextIds()) Reset(false);  // what is lost is not released: for the tests to come
}

TEST(CudaDriverServed, AnAttributeThatItDoesNotKnowIsNotThere) {
  const absl::Status status = CudaDevice::Open({.ordinal = 0, .fabric_handles = true}).status();
  if (Version() >= "12.3") {
    EXPECT_EQ(status, absl::OkStatus());
  } else {
    EXPECT_EQ(status, absl::FailedPreconditionError("CUDA device 0 has no memory that a fabric handle can export"));
  }
}

TEST(CudaDriverWithoutVirtualMemory, ServesSegments) {
  const absl::StatusOr<std::unique_ptr<CudaDevice>> device = CudaDevice::Open({.ordinal = 0});
  ASSERT_TRUE(device.ok()) << device.status();
  const absl::StatusOr<std::uint64_t> segment = (*device)->AllocateSegment(kPage);
  ASSERT_TRUE(segment.ok()) << segment.status();
  EXPECT_EQ((*device)->FreeSegment(*segment), absl::OkStatus());
  EXPECT_EQ((*device)->granularity_bytes(), 0u);
  EXPECT_EQ((*device)->Reserve(kPage).status(),
            absl::UnimplementedError(
                "CUDA device 0 has no virtual memory management (its driver, of version 11.4, has no "
                "cuMemGetAllocationGranularity of CUDA 10.2): leave out expandable_segments and policy:ashlar"));
}

TEST(CudaDriverTooOld, IsNamedWithWhatItLacks) {
  EXPECT_EQ(CudaDevice::Open({.ordinal = 0}).status(),
            absl::UnavailableError("the CUDA driver, of version 10.1, has no cuDevicePrimaryCtxRelease of CUDA 11.0: "
                                   "install a driver of CUDA 11.0 or later"));
}

TEST(CudaDriverWithoutDevice, SaysSo) {
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(CudaDevice::Open({.ordinal = 0}).status(),
              absl::UnavailableError("no CUDA device: cuInit failed: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is "
                                     "detected"));
  }
}

TEST(CudaDriverBroken, IsNamedWithTheLinkersReason) {
  const absl::Status status = CudaDevice::Open({.ordinal = 0}).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  for (const char* part : {"no CUDA driver: ", "/libcuda.so.1: file too short"}) {
    EXPECT_NE(status.message().find(part), absl::string_view::npos) << status;
  }
}

TEST(CudaDriverOfThisMachine, OpensOrSaysWhyInOneLine) {
  const absl::StatusOr<std::unique_ptr<CudaDevice>> device = CudaDevice::Open({.ordinal = 0});
  if (device.ok()) return;
  const std::string message(device.status().message());
  EXPECT_TRUE(absl::IsUnavailable(device.status())) << device.status();
  EXPECT_NE(message.find("CUDA"), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  if (dlopen("libcuda.so.1", RTLD_NOW) == nullptr) {
    EXPECT_EQ(message,
              "no CUDA driver: libcuda.so.1: cannot open shared object file: No such file or directory "
              "(NVIDIA's driver brings it)");
  }
}

}  // namespace
}  // namespace ashlar::device
