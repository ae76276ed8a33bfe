// Every device call that can fail is made to fail, one after the other, over random programs. Nothing leaks, the state
// stays valid, the error arrives unchanged, and the next request works.
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/core/inspect.h"
#include "allocator/device/sim_device.h"
#include "gtest/gtest.h"
#include "tests/allocator/core/held_bytes.h"
#include "tests/allocator/core/program.h"

namespace ashlar::core {
namespace {

class FaultyRun {
 public:
  FaultyRun(const Program& program, std::uint64_t failing_call, const absl::Status& failure)
      : program_(program),
        failure_(failure),
        device_(Options(program)),
        allocator_(&device_, *policy::ParseConf(program.conf, program.compat, policy::Keys::kAshlar)) {
    device_.FailCall(failing_call, failure);
  }

  void Run() {
    for (std::size_t i = 0; i < program_.ops.size(); ++i) {
      Step(program_.ops[i]);
      ASSERT_EQ(device_.used_bytes(), HeldBytes(Inspection(allocator_).heap())) << "after op " << i;
      ASSERT_TRUE(allocator_.Validate().ok()) << "after op " << i << ": " << allocator_.Validate();
    }
    GiveEverythingBack();
  }

  bool has_failed() const { return has_failed_; }

 private:
  static device::SimDeviceOptions Options(const Program& program) {
    device::SimDeviceOptions options;
    options.capacity_bytes = program.capacity_bytes;
    options.events_complete_immediately = program.events_complete_immediately;
    return options;
  }

  void Step(const Op& op) {
    const auto live = live_.find(op.id);
    if (op.kind == Op::kAlloc && live == live_.end()) return Allocate(op);
    if (op.kind == Op::kComplete) return device_.CompleteAllWork();
    if (op.kind == Op::kEmptyCache) return allocator_.EmptyCache();
    if (live == live_.end()) return;
    if (op.kind == Op::kRecord) return allocator_.RecordStream(live->second, Stream{op.stream});
    if (op.kind != Op::kFree) return;
    allocator_.Free(live->second);
    live_.erase(live);
  }

  void Allocate(const Op& op) {
    const std::uint64_t ooms = allocator_.stats().num_ooms;
    absl::StatusOr<Block*> block = allocator_.Allocate(op.value, Stream{op.stream});
    if (!block.ok() && !absl::IsResourceExhausted(block.status())) {
      EXPECT_EQ(block.status(), failure_) << "the device's own error";
      EXPECT_EQ(allocator_.stats().num_ooms, ooms) << "a device error is not out of memory";
      EXPECT_FALSE(has_failed_) << "only one call was to fail";
      has_failed_ = true;
      block = allocator_.Allocate(op.value, Stream{op.stream});
      EXPECT_TRUE(block.ok() || absl::IsResourceExhausted(block.status())) << block.status();
    }
    if (block.ok() && *block != nullptr) live_[op.id] = *block;
  }

  void GiveEverythingBack() {
    for (const auto& [id, block] : live_) allocator_.Free(block);
    live_.clear();
    allocator_.EmptyCache();
    EXPECT_EQ(device_.used_bytes(), 0u);
    EXPECT_EQ(Inspection(allocator_).heap().reserved_bytes(), 0u);
    EXPECT_TRUE(allocator_.Validate().ok()) << allocator_.Validate();
  }

  const Program& program_;
  absl::Status failure_;
  device::SimDevice device_;
  CachingAllocator allocator_;
  std::map<std::uint32_t, Block*> live_;
  bool has_failed_ = false;
};

// How often the failure reached a caller.
std::size_t FaultInjectionFailEachCall(const absl::Status& failure) {
  std::size_t failures = 0;
  for (std::uint64_t seed = 500'000; seed < 500'060; ++seed) {
    const Program program = RandomProgram(seed);
    for (std::uint64_t call = 0; call < 30; ++call) {
      SCOPED_TRACE("seed " + std::to_string(seed) + " call " + std::to_string(call));
      FaultyRun run(program, call, failure);
      run.Run();
      if (run.has_failed()) ++failures;
      if (testing::Test::HasFailure()) return failures;
    }
  }
  return failures;
}

TEST(FaultInjectionTest, OutOfMemoryAtEachCall) {
  EXPECT_EQ(FaultInjectionFailEachCall(absl::ResourceExhaustedError("injected")), 0u);
}

TEST(FaultInjectionTest, DeviceErrorAtEachCall) {
  EXPECT_GT(FaultInjectionFailEachCall(absl::InternalError("injected")), 500u);
}

TEST(FaultInjectionTest, TheNextRequestWorks) {
  for (const char* conf : {"", "expandable_segments:True", "policy:ashlar"}) {
    for (std::uint64_t call = 0; call < 2; ++call) {
      device::SimDevice device{device::SimDeviceOptions{}};
      CachingAllocator allocator(&device, *policy::ParseConf(conf, policy::Compat::kTorch210, policy::Keys::kAshlar));
      device.FailCall(call, absl::InternalError("injected"));
      const bool is_reached = call == 0 || *conf != '\0';
      const absl::StatusOr<Block*> first = allocator.Allocate(5 * kMiB, Stream{0});
      EXPECT_EQ(absl::IsInternal(first.status()), is_reached) << conf << " call " << call;
      EXPECT_TRUE(allocator.Allocate(5 * kMiB, Stream{0}).ok());
    }
  }
}

// Out of memory that the device reports once is overcome by the ladder: one retry.
TEST(FaultInjectionTest, OneOutOfMemoryIsOneRetry) {
  device::SimDevice device{device::SimDeviceOptions{}};
  CachingAllocator allocator(&device, policy::Options{});
  device.FailCall(0, absl::ResourceExhaustedError("injected"));
  EXPECT_TRUE(allocator.Allocate(5 * kMiB, Stream{0}).ok());
  EXPECT_EQ(allocator.stats().num_alloc_retries, 1u);
  EXPECT_EQ(allocator.stats().num_ooms, 0u);
}

}  // namespace
}  // namespace ashlar::core
