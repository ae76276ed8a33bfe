// Memory from the device, for one request: a new segment, or pages mapped into an expandable one.
//
//   DeviceGrowth growth(ledger, device, limits, errors);
//   Growth grown = growth.Grow(plan);       // what it obtained is in the ledger, and in no free set
//   if (grown.block == nullptr && grown.refusal == Refusal::kOutOfMemory) ...   // the next rung
//
// Each is one rung's call of the device, and books what came of it; nothing is released or searched here. Thread rule:
// not thread-safe; the allocator's exclusive section guards it.
#ifndef ASHLAR_ALLOCATOR_CORE_GROWTH_H_
#define ASHLAR_ALLOCATOR_CORE_GROWTH_H_

#include <cstdint>

#include "absl/status/status.h"
#include "allocator/core/device_errors.h"
#include "allocator/core/ledger.h"
#include "allocator/core/limits.h"
#include "allocator/device/device.h"
#include "allocator/policy/heap.h"
#include "allocator/policy/page_rule.h"

namespace ashlar::core {

// Why there is no memory. kRejected: by throw_on_cudamalloc_oom, before the device was asked.
enum class Refusal : std::uint8_t { kNone, kOutOfMemory, kRejected, kDeviceError };

// A block, or why there is none.
struct Growth {
  policy::Block* block = nullptr;
  Refusal refusal = Refusal::kNone;
  absl::Status error = {};  // the device's own, for kDeviceError
};

class DeviceGrowth {
 public:
  // All outlive this.
  DeviceGrowth(Ledger& ledger, device::Device& device, const Limits& limits, DeviceErrors& errors)
      : ledger_(ledger), device_(device), limits_(limits), errors_(errors) {}

  Growth Grow(const policy::Plan& plan);

 private:
  Growth NewSegment(const policy::Plan& plan);
  Growth GrowExpandable(const policy::Plan& plan);
  Growth NewReservation(const policy::Plan& plan);
  Growth Map(policy::Block* unmapped, std::uint64_t wanted_bytes);
  Growth Map(policy::Block* unmapped, const policy::GrowthSize& size);
  std::uint64_t GrowthBytes(const policy::Plan& plan) const;
  std::uint64_t ReservationBytes(std::uint64_t page_bytes) const;
  Growth Refused(std::uint64_t bytes);                             // by the device or the limit
  Growth Failed(const absl::Status& status, std::uint64_t bytes);  // as the device's status says

  Ledger& ledger_;
  device::Device& device_;
  const Limits& limits_;
  DeviceErrors& errors_;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_GROWTH_H_
