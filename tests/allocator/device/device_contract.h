// The contract of every device as a suite (device_contract.cc): a new device earns its place by instantiating it.
//
//   TestedDevice MakeSim() { ... }
//   INSTANTIATE_TEST_SUITE_P(Sim, DeviceContractTest, testing::Values(DeviceMaker{"plain", MakeSim}));
//
// The suite needs 64 pages of memory, and assumes that nobody else takes or returns memory of the device
// meanwhile.
#ifndef ASHLAR_TESTS_ALLOCATOR_DEVICE_DEVICE_CONTRACT_H_
#define ASHLAR_TESTS_ALLOCATOR_DEVICE_DEVICE_CONTRACT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "allocator/device/device.h"
#include "gtest/gtest.h"

namespace ashlar::device {

struct TestedDevice {
  std::shared_ptr<void> world = {};  // what the device stands on, and outlives it
  std::unique_ptr<Device> device = {};
  std::uint64_t page_bytes = 2 * kMiB;     // a page size that the device can map
  std::vector<Stream> streams = {};        // two streams that exist
  std::function<void()> finish_work = {};  // all work recorded so far is done after this
  bool work_waits = false;                 // recorded work is not done before finish_work or a synchronise
  std::string skip_reason = {};            // not empty: the device is not the one to test, which is not here
};

struct DeviceMaker {
  const char* name = "";  // ctest shows it
  TestedDevice (*make)() = nullptr;
};
inline void PrintTo(const DeviceMaker& maker, std::ostream* out) { *out << maker.name; }

class DeviceContractTest : public testing::TestWithParam<DeviceMaker> {
 protected:
  void SetUp() override {
    if (!tested_.skip_reason.empty()) GTEST_SKIP() << tested_.skip_reason;
  }
  std::uint64_t FreeBytes() { return device_.GetMemoryInfo().free_bytes; }
  std::uint64_t TotalBytes() { return device_.GetMemoryInfo().total_bytes; }
  // More than the device can ever give, in whole pages.
  std::uint64_t TooManyBytes() { return RoundUp(TotalBytes(), page_) + page_; }

  TestedDevice tested_ = GetParam().make();
  Device& device_ = *tested_.device;
  const std::uint64_t page_ = tested_.page_bytes;
};

}  // namespace ashlar::device

#endif  // ASHLAR_TESTS_ALLOCATOR_DEVICE_DEVICE_CONTRACT_H_
