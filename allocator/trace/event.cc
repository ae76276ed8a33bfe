#include "allocator/trace/event.h"

#include <array>
#include <cstddef>
#include <optional>

#include "absl/strings/string_view.h"

namespace ashlar::trace {
namespace {

constexpr std::array<absl::string_view, 11> kNames = {
    "alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap",
    "oom",   "snapshot",       "annotate",       "unknown"};

}  // namespace

absl::string_view ActionName(Action action) { return kNames[static_cast<std::size_t>(action)]; }

std::optional<Action> ParseAction(absl::string_view name) {
  for (std::size_t i = 0; i + 1 < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Action>(i);
  }
  return std::nullopt;
}

}  // namespace ashlar::trace
