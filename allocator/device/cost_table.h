// The simulated device's cost model as text, so that costs measured on one machine rank settings on another:
//
//   # NVIDIA H100: medians of 40 calls
//   segment_alloc_ns 61234
//   segment_free_ns 48111
//   ...
//
// A line is a key and nanoseconds; what # begins is a remark. What is not named keeps its default. InvalidArgument with
// the line's number: an unknown key, a key that stands twice, no number; or without any cost at all.
#ifndef ASHLAR_ALLOCATOR_DEVICE_COST_TABLE_H_
#define ASHLAR_ALLOCATOR_DEVICE_COST_TABLE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/device/sim_device.h"

namespace ashlar::device {

absl::StatusOr<CostModel> ReadCosts(absl::string_view text);
std::string PrintCosts(const CostModel& costs);

}  // namespace ashlar::device

#endif  // ASHLAR_ALLOCATOR_DEVICE_COST_TABLE_H_
