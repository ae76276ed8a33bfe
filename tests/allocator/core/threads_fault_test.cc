// Device calls that fail while four threads use the allocator: nothing leaks, the state stays valid, and the next
// request works. The fake CUDA aborts on any misuse on the way; it is called under the allocator's lock alone.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "allocator/base/rng.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/core/inspect.h"
#include "allocator/device/cuda_device.h"
#include "gtest/gtest.h"
#include "tests/allocator/core/held_bytes.h"
#include "tests/fake_cuda/fake_cuda.h"

namespace ashlar::core {
namespace {

using device::CudaDevice;
using device::FakeCuda;

void RunThread(CachingAllocator& allocator, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<Block*> held;
  for (int step = 0; step < 60; ++step) {
    const std::uint64_t dice = rng.Below(100);
    if (dice < 50) {
      const absl::StatusOr<Block*> block = allocator.Allocate(rng.Between(1, 9 * kMiB), Stream{rng.Below(3)});
      if (block.ok()) held.push_back(*block);
    } else if (dice < 65 && !held.empty()) {
      allocator.RecordStream(held[rng.Below(held.size())], Stream{rng.Below(3)});
    } else if (dice < 95 && !held.empty()) {
      std::swap(held[rng.Below(held.size())], held.back());
      allocator.Free(held.back());
      held.pop_back();
    } else if (dice < 97) {
      allocator.EmptyCache();
    } else {
      EXPECT_EQ(allocator.Validate(), absl::OkStatus());
    }
  }
  for (Block* block : held) allocator.Free(block);
}

// False when the threads made fewer calls than that.
bool RunThreads(const std::string& conf, std::uint64_t failing_call) {
  FakeCuda cuda({.capacity_bytes = 100 * kMiB});
  cuda.MakeCurrent(cuda.ContextOf(0));
  const std::unique_ptr<CudaDevice> device = *CudaDevice::Open({.ordinal = 0});
  CachingAllocator allocator(device.get(), *policy::ParseConf(conf, policy::Compat::kTorch210, policy::Keys::kAshlar));
  cuda.FailCall(failing_call, 999);
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] { RunThread(allocator, failing_call * 4 + i); });
  }
  for (std::thread& thread : threads) thread.join();
  const bool has_failed = cuda.has_failed();
  cuda.StopFailing();
  EXPECT_EQ(allocator.Validate(), absl::OkStatus());
  EXPECT_EQ(cuda.used_bytes(), HeldBytes(Inspection(allocator).heap()) + device->unreturned_bytes());
  allocator.EmptyCache();
  const absl::StatusOr<Block*> next = allocator.Allocate(80 * kMiB, Stream{0});
  EXPECT_TRUE(next.ok()) << next.status();
  if (next.ok()) allocator.Free(*next);
  allocator.EmptyCache();
  EXPECT_EQ(allocator.pending_event_count(), 0u);
  EXPECT_EQ(Inspection(allocator).heap().reserved_bytes(), 0u);
  EXPECT_EQ(cuda.used_bytes(), 0u);
  return has_failed;
}

TEST(ThreadsFaultTest, ACallFailsWhileOthersAreInside) {
  for (const std::string conf : {"", "expandable_segments:True", "sync_just_enough:True,borrow_across_streams:True"}) {
    int failures = 0;
    for (std::uint64_t call = 0; call < 600; call += 7) {
      SCOPED_TRACE(conf + ", call " + std::to_string(call));
      failures += RunThreads(conf, call) ? 1 : 0;
      if (testing::Test::HasFailure()) return;
    }
    EXPECT_GT(failures, 40) << conf;
  }
}

}  // namespace
}  // namespace ashlar::core
