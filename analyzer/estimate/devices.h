// GPUs by name: how much memory the driver shows, what a process's CUDA context takes of it, and where each number is
// from.
#ifndef ASHLAR_ANALYZER_ESTIMATE_DEVICES_H_
#define ASHLAR_ANALYZER_ESTIMATE_DEVICES_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ashlar::estimate {

// What a process takes outside the allocator; no bytes where there is no source.
struct ContextFacts {
  std::optional<std::uint64_t> bytes = {};
  absl::string_view source = {};
};

struct DeviceFacts {
  absl::string_view name;
  std::uint64_t total_bytes = 0;
  absl::string_view total_source;
  absl::string_view gpu;            // whose library buffers: a name of kernels::GpuNamed
  ContextFacts eager_context = {};  // every kernel loaded when the context is made: before torch 1.13
  ContextFacts lazy_context = {};   // each when it is first called (CUDA_MODULE_LOADING=LAZY): from torch 1.13 on
};

// "V100-16GB", "T4", "A100-40GB", ... in any case of letters. Errors list them.
absl::StatusOr<DeviceFacts> DeviceNamed(absl::string_view name);

// Whose context stands for those that the table does not have: the V100's before torch 1.13, the A100's since.
DeviceFacts ReferenceDevice(bool is_lazy);
// The least and the most bytes of the contexts that the table has.
std::pair<std::uint64_t, std::uint64_t> KnownContexts(bool is_lazy);

}  // namespace ashlar::estimate

#endif  // ASHLAR_ANALYZER_ESTIMATE_DEVICES_H_
