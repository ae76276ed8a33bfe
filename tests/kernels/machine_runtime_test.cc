// The runtime of a machine: the same program as on the host, with streams of its own, copies, and a limit on a device
// that has more.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "tests/kernels/fake_machine.h"
#include "tests/kernels/small_runs.h"

namespace ashlar::kernels {
namespace {

std::unique_ptr<Runtime> RuntimeOver(FakeMachineSide& side, const RuntimeOptions& options) {
  absl::StatusOr<std::unique_ptr<Runtime>> runtime = Runtime::Make(options, std::make_unique<FakeMachine>(&side));
  EXPECT_TRUE(runtime.ok()) << runtime.status();
  return *std::move(runtime);
}

const SmallRun& SmallRunOf(absl::string_view name) {
  for (const SmallRun& run : SmallRuns()) {
    if (run.name == name) return run;
  }
  ASHLAR_CHECK(false);
  return SmallRuns().front();
}

TEST(MachineRuntime, AsksForTheSameAsTheHost) {
  for (const SmallRun& small : SmallRuns()) {
    SCOPED_TRACE(small.name);
    const std::unique_ptr<Runtime> host = *Runtime::Make(SmallRuntime(DeviceKind::kHost));
    const Ran on_host = RunIn(*host, small);
    FakeMachineSide side(2 * kGiB);
    side.value = 0.5;
    {
      const std::unique_ptr<Runtime> runtime = RuntimeOver(side, SmallRuntime(DeviceKind::kCuda));
      const Ran ran = RunIn(*runtime, small);
      EXPECT_TRUE(ran.status.ok()) << ran.status;
      EXPECT_EQ(ran.events, on_host.events);
      EXPECT_EQ(ran.left, 0u);
      EXPECT_EQ(ran.losses, std::vector<double>(on_host.losses.size(), 0.5)) << "each was read from the device";
      EXPECT_EQ(side.copies_out, on_host.losses.size());
      EXPECT_TRUE(runtime->allocator().Validate().ok());
    }
    EXPECT_EQ(side.finishes, 1u);
    EXPECT_EQ(side.cuda.used_bytes(), 0u) << "everything was returned";
  }
}

// Batches and first weights come from the host: a fan-out has neither, an embedding table its lookups and itself.
TEST(MachineRuntime, CopiesWhatTheHostMakes) {
  FakeMachineSide side(kGiB);
  const std::unique_ptr<Runtime> fan_out = RuntimeOver(side, SmallRuntime(DeviceKind::kCuda));
  EXPECT_TRUE(RunIn(*fan_out, SmallRunOf("stream_fanout")).status.ok());
  EXPECT_EQ(side.copies_in, 0u);
  const std::unique_ptr<Runtime> lookups = RuntimeOver(side, SmallRuntime(DeviceKind::kCuda));
  EXPECT_TRUE(RunIn(*lookups, SmallRunOf("embedding_serving")).status.ok());
  EXPECT_EQ(side.copies_in, 1 + 40u);
}

TEST(MachineRuntime, StreamsAreItsOwnAndWaitForEachOther) {
  FakeMachineSide side(kGiB);
  const std::unique_ptr<Runtime> fan_out = RuntimeOver(side, SmallRuntime(DeviceKind::kCuda));
  EXPECT_TRUE(RunIn(*fan_out, SmallRunOf("stream_fanout")).status.ok());
  EXPECT_EQ(side.streams, 1u) << "the maker's is there from the start";
  EXPECT_EQ(fan_out->StreamOf(1), Stream{0x5001});
  EXPECT_EQ(side.cuda.calls_of("cuStreamWaitEvent"), 20u) << "the reader waits for every batch";
  const std::unique_ptr<Runtime> lookups = RuntimeOver(side, SmallRuntime(DeviceKind::kCuda));
  EXPECT_TRUE(RunIn(*lookups, SmallRunOf("embedding_serving")).status.ok());
  EXPECT_EQ(side.streams, 1 + 3u);
  EXPECT_EQ(side.cuda.calls_of("cuStreamWaitEvent"), 20 + 3u) << "three wait for the table";
}

TEST(MachineRuntime, CapacityIsALimitOnABiggerDevice) {
  FakeMachineSide side(64 * kMiB);
  const auto limit_of = [&](std::optional<std::uint64_t> capacity, const char* conf) {
    RuntimeOptions options = SmallRuntime(DeviceKind::kCuda, capacity);
    options.allocator = *policy::ParseConf(conf, policy::Compat::kTorch210, policy::Keys::kAshlar);
    const std::unique_ptr<Runtime> runtime = RuntimeOver(side, options);
    EXPECT_EQ(runtime->capacity_bytes(), capacity.value_or(64 * kMiB));
    return runtime->allocator().limit_bytes();
  };
  EXPECT_EQ(limit_of({}, ""), std::nullopt);
  EXPECT_EQ(limit_of(64 * kMiB, ""), std::nullopt);
  EXPECT_EQ(limit_of(48 * kMiB + 1, ""), 48 * kMiB + 1);
  EXPECT_EQ(limit_of(48 * kMiB, "memory_limit_mb:30"), 30 * kMiB);
  EXPECT_EQ(limit_of(20 * kMiB, "memory_limit_mb:30"), 20 * kMiB);
  EXPECT_EQ(Runtime::Make(SmallRuntime(DeviceKind::kCuda, 65 * kMiB), std::make_unique<FakeMachine>(&side)).status(),
            absl::InvalidArgumentError("65.00 MiB is more than the 64.00 MiB that the device has"));

  const std::unique_ptr<Runtime> runtime = RuntimeOver(side, SmallRuntime(DeviceKind::kCuda, 4 * kMiB));
  const Ran ran = RunIn(*runtime, SmallRunOf("gpt_training"));
  EXPECT_EQ(ran.status.code(), absl::StatusCode::kResourceExhausted) << ran.status;
  ASSERT_TRUE(runtime->context().memory().failure().has_value());
  EXPECT_EQ(ran.left, 0u);
  EXPECT_LE(runtime->allocator().stats().reserved_bytes.all().peak, std::int64_t{4 * kMiB});
}

// A device that the workload has to itself, but for cuBLAS's buffer: what does not fit is not the workload's request.
TEST(MachineRuntime, ScratchThatIsNotThereIsNoOutOfMemoryOfTheWorkload) {
  FakeMachineSide side(8 * kMiB);
  RuntimeOptions options = SmallRuntime(DeviceKind::kCuda, std::nullopt);
  options.framework.has_cublas_workspace = false;
  const std::unique_ptr<Runtime> runtime = RuntimeOver(side, options);
  const Ran ran = RunIn(*runtime, SmallRunOf("bert_training"));
  EXPECT_EQ(ran.status,
            absl::UnavailableError("matmul: the device has no memory left for scratch beside the workload's: give the "
                                   "workload a smaller --capacity"));
  EXPECT_FALSE(runtime->context().memory().failure().has_value());
  EXPECT_EQ(ran.left, 0u);
}

TEST(MachineRuntime, ErrorsOfTheDeviceEndARun) {
  for (const char* name : {"bert_training", "embedding_serving"}) {
    FakeMachineSide side(kGiB);
    side.copy = absl::InternalError("cudaMemcpyAsync: cudaErrorIllegalAddress");
    const std::unique_ptr<Runtime> runtime = RuntimeOver(side, SmallRuntime(DeviceKind::kCuda));
    const Ran ran = RunIn(*runtime, SmallRunOf(name));
    EXPECT_EQ(ran.status, side.copy) << name;
    EXPECT_EQ(ran.left, 0u);
  }
  FakeMachineSide side(kGiB);
  side.new_stream = absl::InternalError("cudaStreamCreateWithFlags: cudaErrorUnknown");
  const std::unique_ptr<Runtime> runtime = RuntimeOver(side, SmallRuntime(DeviceKind::kCuda));
  EXPECT_EQ(RunIn(*runtime, SmallRunOf("stream_fanout")).status, side.new_stream);
}

}  // namespace
}  // namespace ashlar::kernels
