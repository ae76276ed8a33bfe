// The CUDA device on a GPU: the contract of every device, and that its memory can be written and read. Skips, with the
// reason, where there is no GPU; over the hollow device it runs anywhere (over_hollow.sh beside the tests of the GPU).
#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "allocator/base/rng.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/core/inspect.h"
#include "allocator/device/cuda_device.h"
#include "allocator/device/sim_device.h"
#include "gtest/gtest.h"
#include "tests/allocator/device/device_contract.h"
#include "tests/no_gpu.h"

namespace ashlar::device {
namespace {

// Pages of 64 MiB: to fill a GPU of 141 GiB with them takes 2,256 handles, with pages of 2 MiB it takes 32 times as
// many.
constexpr std::uint64_t kPage = 64 * kMiB;

void Check(cudaError_t code) { ASSERT_EQ(code, cudaSuccess) << cudaGetErrorString(code); }

void* Pointer(std::uint64_t address) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)); }

struct OwnStream {
  OwnStream() { Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)); }
  ~OwnStream() { cudaStreamDestroy(stream); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  Stream handle() const { return Stream{static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(stream))}; }
  cudaStream_t stream = nullptr;
};

TestedDevice MakeGpu() {
  absl::StatusOr<std::unique_ptr<CudaDevice>> device = CudaDevice::Open({.ordinal = 0});
  if (!device.ok()) {
    return {.device = std::make_unique<SimDevice>(SimDeviceOptions{}), .skip_reason = WhyNoGpu(device.status())};
  }
  auto stream = std::make_shared<OwnStream>();
  const Stream handle = stream->handle();
  return {.world = std::move(stream),
          .device = *std::move(device),
          .page_bytes = kPage,
          .streams = {Stream{0}, handle},
          .finish_work = [] { Check(cudaDeviceSynchronize()); }};
}

INSTANTIATE_TEST_SUITE_P(Gpu, DeviceContractTest, testing::Values(DeviceMaker{"first_device", MakeGpu}));

class CudaGpuTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<CudaDevice>> device = CudaDevice::Open({.ordinal = 0});
    if (!device.ok()) GTEST_SKIP() << WhyNoGpu(device.status());
    device_ = *std::move(device);
  }
  std::unique_ptr<CudaDevice> device_;
};

void Fill(std::uint64_t address, std::uint64_t size_bytes, int value) {
  Check(cudaMemset(Pointer(address), value, size_bytes));
}

bool IsAll(std::uint64_t address, std::uint64_t size_bytes, int value) {
  std::vector<unsigned char> copy(size_bytes);
  Check(cudaMemcpy(copy.data(), Pointer(address), size_bytes, cudaMemcpyDeviceToHost));
  for (const unsigned char at : copy) {
    if (at != value) return false;
  }
  return true;
}

TEST_F(CudaGpuTest, SegmentsAndPagesAreMemory) {
  const std::uint64_t page = device_->granularity_bytes();
  const std::uint64_t segment = *device_->AllocateSegment(page);
  const std::uint64_t base = *device_->Reserve(8 * page);
  ASSERT_TRUE(device_->Map(base, 3 * page, page).ok());
  Fill(segment, page, 1);
  Fill(base, 3 * page, 2);
  ASSERT_TRUE(device_->Unmap(base + page, page, page).ok());
  ASSERT_TRUE(device_->Map(base + page, page, page).ok());
  Fill(base + page, page, 3);
  EXPECT_TRUE(IsAll(segment, page, 1) && IsAll(base, page, 2) && IsAll(base + page, page, 3));
  EXPECT_TRUE(IsAll(base + 2 * page, page, 2));
}

TEST_F(CudaGpuTest, AThreadWithoutAContextKeepsNone) {
  std::thread([this] {
    const absl::StatusOr<std::uint64_t> segment = device_->AllocateSegment(2 * kMiB);
    EXPECT_TRUE(segment.ok()) << segment.status();
    const DeviceEvent event = device_->RecordEvent(Stream{0});
    EXPECT_TRUE(device_->SynchronizeEvent(event).ok());
    EXPECT_TRUE(device_->QueryEvent(event));
    EXPECT_TRUE(!segment.ok() || device_->FreeSegment(*segment).ok());
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }).join();
}

// Blocks of random sizes, written when they are handed out and read before they are freed.
TEST_F(CudaGpuTest, BlocksKeepWhatIsWritten) {
  for (const char* conf : {"max_split_size_mb:64", "expandable_segments:True"}) {
    core::CachingAllocator allocator(device_.get(), *policy::ParseConf(conf, policy::Compat::kTorch210));
    Rng rng(11);
    std::vector<std::pair<core::Block*, int>> live;
    for (int step = 1; step <= 300; ++step) {
      if (live.size() > 20 || (!live.empty() && rng.Below(3) == 0)) {
        const std::size_t at = rng.Below(live.size());
        const auto [block, value] = live[at];
        ASSERT_TRUE(IsAll(block->address, block->requested_bytes, value)) << conf << " step " << step;
        allocator.Free(block);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
        continue;
      }
      const absl::StatusOr<core::Block*> block =
          allocator.Allocate(rng.Between(1, rng.Below(2) == 0 ? kMiB : 40 * kMiB), Stream{0});
      ASSERT_TRUE(block.ok()) << block.status();
      live.emplace_back(*block, step % 251);
      Fill((*block)->address, (*block)->requested_bytes, step % 251);
    }
    for (const auto& [block, value] : live) {
      EXPECT_TRUE(IsAll(block->address, block->requested_bytes, value)) << conf;
      allocator.Free(block);
    }
    allocator.EmptyCache();
    EXPECT_TRUE(allocator.TakeDeviceError().ok());
    EXPECT_EQ(core::Inspection(allocator).heap().reserved_bytes(), 0u);
    EXPECT_EQ(device_->unreturned_bytes(), 0u);
  }
}

// What sleeps gives its pages to others and comes back as it was, through memory of the host and through a file.
TEST_F(CudaGpuTest, WhatSleepsComesBackAsItWas) {
  for (const Keep keep : {Keep::kHost, Keep::kFile}) {
    core::CachingAllocator allocator(device_.get(),
                                     *policy::ParseConf("expandable_segments:True", policy::Compat::kTorch210));
    std::vector<core::Block*> live;
    for (int value = 1; value <= 6; ++value) {
      const absl::StatusOr<core::Block*> block =
          allocator.Allocate(static_cast<std::uint64_t>(value) * 7 * kMiB, Stream{0});
      ASSERT_TRUE(block.ok()) << block.status();
      live.push_back(*block);
      Fill((*block)->address, (*block)->requested_bytes, value);
    }
    const absl::StatusOr<SleepReport> slept = allocator.Sleep({.keep = keep});
    ASSERT_TRUE(slept.ok()) << slept.status();
    EXPECT_EQ(core::Inspection(allocator).heap().reserved_bytes(), 0u);
    const std::uint64_t others = *device_->AllocateSegment(64 * kMiB);
    Fill(others, 64 * kMiB, 99);
    ASSERT_TRUE(device_->FreeSegment(others).ok());
    ASSERT_TRUE(allocator.Wake({}).ok());
    for (std::size_t i = 0; i < live.size(); ++i) {
      EXPECT_TRUE(IsAll(live[i]->address, live[i]->requested_bytes, static_cast<int>(i) + 1));
      allocator.Free(live[i]);
    }
    allocator.EmptyCache();
    EXPECT_TRUE(allocator.TakeDeviceError().ok());
    EXPECT_EQ(device_->unreturned_bytes(), 0u);
  }
}

}  // namespace
}  // namespace ashlar::device
