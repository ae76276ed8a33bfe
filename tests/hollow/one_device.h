// A machine of devices for tests of the accounting: nothing shared with other processes, addresses as SimDevice has
// them.
#ifndef ASHLAR_TESTS_HOLLOW_ONE_DEVICE_H_
#define ASHLAR_TESTS_HOLLOW_ONE_DEVICE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "hollow/model/allocations.h"
#include "hollow/model/device_model.h"
#include "hollow/model/shared_machine.h"
#include "hollow/model/virtual_memory.h"

namespace ashlar::hollow::test {

inline constexpr std::uint64_t kFirstAddress = 0x7f0000000000;
inline constexpr std::uint64_t kSpan = std::uint64_t{1} << 47;
inline constexpr std::uint64_t kFirstReservation = kFirstAddress + kSpan / 8;  // base_address + 2^44

struct OneDevice {
  explicit OneDevice(std::uint64_t total_bytes, int devices = 1,
                     device::AddressOrder order = device::AddressOrder::kAscending, const std::string& folder = "")
      : shared(folder, devices) {
    for (int i = 0; i < devices; ++i) {
      DeviceSetup setup{.ordinal = i, .total_bytes = total_bytes, .context_bytes = 10 * kMiB, .span_bytes = kSpan};
      setup.base_address = kFirstAddress + static_cast<std::uint64_t>(i) * kSpan;
      setup.address_order = order;
      all.push_back(std::make_unique<DeviceModel>(setup, shared, failures));
    }
  }
  DeviceModel& device() { return *all[0]; }

  SharedMachine shared;
  FailurePlan failures;
  Devices all;
  Allocations allocations;
  VirtualMemory memory{all, allocations};
};

}  // namespace ashlar::hollow::test

#endif  // ASHLAR_TESTS_HOLLOW_ONE_DEVICE_H_
