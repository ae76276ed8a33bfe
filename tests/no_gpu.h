// Why a test of the GPU skips:
//   if (!device.ok()) GTEST_SKIP() << WhyNoGpu(device.status());
// A GPU that is there, and not hidden by CUDA_VISIBLE_DEVICES, and does not open fails the test: whether it is there
// say the device files of NVIDIA's driver that can be opened (on WSL, Windows'). The driver's library makes one where
// it runs as root, also where there is no GPU: nobody opens that.
#ifndef ASHLAR_TESTS_NO_GPU_H_
#define ASHLAR_TESTS_NO_GPU_H_

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/status/status.h"

namespace ashlar {

inline bool CanOpen(const char* path) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file >= 0) close(file);
  return file >= 0;
}

inline std::string WhyNoGpu(const absl::Status& status) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const bool is_hidden = visible != nullptr && (*visible == '\0' || std::string(visible) == "-1");
  const bool is_there = CanOpen("/dev/nvidiactl") || std::filesystem::exists("/dev/dxg");
  EXPECT_TRUE(absl::IsUnavailable(status) && (is_hidden || !is_there)) << status;
  return std::string(status.message());
}

}  // namespace ashlar

#endif  // ASHLAR_TESTS_NO_GPU_H_
