#include "allocator/trace/backend.h"

#include <map>
#include <string>

#include "absl/strings/match.h"

namespace ashlar::trace {
namespace {

// c10/xpu/XPUCachingAllocator.h (AllocatorConfigInfo): expandable_segments and the text are all that it writes. CUDA's
// allocator has always written its limits too.
bool HasSettingsOfXpu(const std::map<std::string, std::string>& values) {
  return values.contains("PYTORCH_ALLOC_CONF") && values.contains("expandable_segments") &&
         !values.contains("max_split_size") && !values.contains("garbage_collection_threshold");
}

bool HasFrameOfHip(const StackTable& stacks) {
  for (FrameId id = 0; id < stacks.frame_count(); ++id) {
    const Frame& frame = stacks.frame(id);
    if (absl::StartsWith(frame.function, "c10::hip::") || absl::StrContains(frame.file, "torch_hip")) return true;
  }
  return false;
}

}  // namespace

Backend BackendOf(const Snapshot& snapshot) {
  if (snapshot.settings.has_value()) {
    if (HasSettingsOfXpu(snapshot.settings->values)) return Backend::kXpu;
    if (snapshot.settings->values.contains("PYTORCH_HIP_ALLOC_CONF")) return Backend::kHip;
  }
  return HasFrameOfHip(snapshot.stacks) ? Backend::kHip : Backend::kCuda;
}

}  // namespace ashlar::trace
