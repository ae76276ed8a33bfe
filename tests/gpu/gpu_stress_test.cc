// The stress on a GPU: kernels stamp and check every block while threads allocate and free, nothing waits. Skips where
// there is no GPU.
#include <memory>
#include <string>

#include "allocator/core/caching_allocator.h"
#include "allocator/core/nvtx_pools.h"
#include "allocator/device/cuda_device.h"
#include "gtest/gtest.h"
#include "tests/gpu/gpu_stamps.h"
#include "tests/gpu/stress.h"
#include "tests/no_gpu.h"

namespace ashlar::tests {
namespace {

// Of the GPU, so that requests fail and the ladder is climbed on any of them.
constexpr std::uint64_t kLimitBytes = 2 * kGiB;
constexpr std::uint64_t kSpinCycles = 100'000;  // some 60 us: work is still under way when its block is freed

class GpuStressTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<device::CudaDevice>> opened = device::CudaDevice::Open({.ordinal = 0});
    if (!opened.ok()) GTEST_SKIP() << WhyNoGpu(opened.status());
    device_ = *std::move(opened);
    stamps_ = MakeGpuStamps();
    ASSERT_NE(stamps_, nullptr);
  }

  void Run(const std::string& conf, trace::EventSink* sink) {
    core::CachingAllocator allocator(device_.get(),
                                     *policy::ParseConf(conf, policy::Compat::kTorch210, policy::Keys::kAshlar));
    const double total = static_cast<double>(device_->GetMemoryInfo().total_bytes);
    ASSERT_TRUE(allocator.SetMemoryFraction(static_cast<double>(kLimitBytes) / total).ok());
    allocator.SetSink(sink);
    const StressResult result = RunStress(
        allocator, *stamps_, {.threads = 8, .rounds = 600, .most_bytes = 96 * kMiB, .spin_cycles = kSpinCycles});
    EXPECT_EQ(result.wrong_words, 0u);
    EXPECT_EQ(result.other_errors, 0u);
    EXPECT_GT(result.out_of_memory, 0u) << "the ladder was climbed to its end";
    EXPECT_GT(result.handed_over, 0u);
    EXPECT_GT(result.recorded, 0u);
    EXPECT_TRUE(allocator.Validate().ok());
    allocator.EmptyCache();
    EXPECT_TRUE(allocator.TakeDeviceError().ok());
    EXPECT_EQ(allocator.stats().reserved_bytes.all().current, 0) << "everything was freed";
    allocator.SetSink(nullptr);
  }

  std::unique_ptr<device::CudaDevice> device_;
  std::unique_ptr<Stamps> stamps_;
};

TEST_F(GpuStressTest, NoBlockIsHeldTwice) { Run("", nullptr); }
TEST_F(GpuStressTest, NorWithASplitLimit) { Run("max_split_size_mb:21", nullptr); }
TEST_F(GpuStressTest, NorInExpandableSegments) { Run("expandable_segments:True", nullptr); }
TEST_F(GpuStressTest, NorWherePagesMove) { Run("policy:ashlar", nullptr); }

// Under compute-sanitizer every block is a region of its own; without it this is the stress behind one lock.
TEST_F(GpuStressTest, NorWhileToolsAreToldOfEveryBlock) {
  core::NvtxPools pools;
  Run("", &pools);
}

// Two writers of one block are seen: the kernels do find what they are for.
TEST_F(GpuStressTest, AnOverlapIsFound) {
  const std::uint64_t address = *device_->AllocateSegment(2 * kMiB);
  const Stream stream = stamps_->NewStream();
  stamps_->Write(stream, address, 4096, 7, 0);
  stamps_->Write(stream, address + 4000, 4096, 8, 0);
  stamps_->Check(stream, address + 4000, 4096, 8, 0);
  EXPECT_EQ(stamps_->WrongWords(), 0u);
  stamps_->Check(stream, address, 4096, 7, 0);
  EXPECT_EQ(stamps_->WrongWords(), 96u / 4);
  EXPECT_TRUE(device_->FreeSegment(address).ok());
}

}  // namespace
}  // namespace ashlar::tests
