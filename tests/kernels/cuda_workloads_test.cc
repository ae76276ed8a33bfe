// Each workload on a GPU beside the host: the same requests, and losses that differ by rounding alone. Skips where
// there is no GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "kernels/workloads/cuda/cuda_machine.h"
#include "tests/kernels/small_runs.h"
#include "tests/no_gpu.h"

namespace ashlar::kernels {
namespace {

// Sums of at most some thousand products in float32, in another order; a step carries them on.
constexpr double kTolerance = 2e-3;

class CudaWorkloadsTest : public testing::TestWithParam<SmallRun> {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<Machine>> machine = OpenCudaMachine();
    if (!machine.ok()) GTEST_SKIP() << WhyNoGpu(machine.status());
    machine_ = *std::move(machine);
  }
  std::unique_ptr<Machine> machine_;
};

TEST_P(CudaWorkloadsTest, AsksAndLearnsAsOnTheHost) {
  const std::unique_ptr<Runtime> host = *Runtime::Make(SmallRuntime(DeviceKind::kHost));
  const Ran expected = RunIn(*host, GetParam());
  ASSERT_TRUE(expected.status.ok()) << expected.status;
  const absl::StatusOr<std::unique_ptr<Runtime>> gpu =
      Runtime::Make(SmallRuntime(DeviceKind::kCuda), std::move(machine_));
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  const Ran ran = RunIn(**gpu, GetParam());
  ASSERT_TRUE(ran.status.ok()) << ran.status;
  EXPECT_EQ(ran.events, expected.events);
  EXPECT_EQ(ran.left, 0u);
  ASSERT_EQ(ran.losses.size(), expected.losses.size());
  for (std::size_t i = 0; i < ran.losses.size(); ++i) {
    EXPECT_NEAR(ran.losses[i], expected.losses[i], kTolerance * (1 + std::abs(expected.losses[i]))) << "step " << i + 1;
  }
  EXPECT_TRUE((*gpu)->allocator().Validate().ok());
}

TEST_P(CudaWorkloadsTest, OutOfMemoryIsTheCapacitys) {
  const absl::StatusOr<std::unique_ptr<Runtime>> gpu =
      Runtime::Make(SmallRuntime(DeviceKind::kCuda, kMiB), std::move(machine_));
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  const Ran ran = RunIn(**gpu, GetParam());
  EXPECT_EQ(ran.status.code(), absl::StatusCode::kResourceExhausted) << ran.status;
  EXPECT_EQ(ran.left, 0u);
}

INSTANTIATE_TEST_SUITE_P(All, CudaWorkloadsTest, testing::ValuesIn(SmallRuns()),
                         [](const auto& run) { return std::string(run.param.name); });

}  // namespace
}  // namespace ashlar::kernels
