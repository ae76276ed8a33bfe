// GPUs by name: how much memory the driver shows, what a process's CUDA context takes of it, and where each number is
// from.
#ifndef ASHLAR_ANALYZER_ESTIMATE_DEVICES_H_
#define ASHLAR_ANALYZER_ESTIMATE_DEVICES_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ashlar::estimate {

struct DeviceFacts {
  absl::string_view name;
  std::uint64_t total_bytes = 0;
  absl::string_view total_source;
  absl::string_view gpu;  // whose library buffers: a name of kernels::GpuNamed
  std::optional<std::uint64_t> context_bytes = {};
  absl::string_view context_source = {};
};

// "V100-16GB", "T4", "A100-40GB", ... in any case of letters. Errors list them.
absl::StatusOr<DeviceFacts> DeviceNamed(absl::string_view name);

// What a context is taken to need where the table has no measurement: the V100's.
DeviceFacts ReferenceDevice();

}  // namespace ashlar::estimate

#endif  // ASHLAR_ANALYZER_ESTIMATE_DEVICES_H_
