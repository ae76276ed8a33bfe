// Why a test of the GPU skips:
//   if (!device.ok()) GTEST_SKIP() << WhyNoGpu(device.status());
// A GPU that is there and does not open fails the test.
#ifndef ASHLAR_TESTS_NO_GPU_H_
#define ASHLAR_TESTS_NO_GPU_H_

#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"

namespace ashlar {

inline std::string WhyNoGpu(const absl::Status& status) {
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  return std::string(status.message());
}

}  // namespace ashlar

#endif  // ASHLAR_TESTS_NO_GPU_H_
