#include "allocator/core/recorded_head.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/core/state.h"
#include "allocator/policy/conf_split.h"

namespace ashlar::core {
namespace {

const char* Printed(bool value) { return value ? "True" : "False"; }

// "1:0,2:4,...": the first MiB of an interval and its divisions.
std::string Divisions(const policy::Options& options) {
  std::string out;
  for (std::size_t i = 0; i < options.roundup_power2_divisions.size(); ++i) {
    absl::StrAppend(&out, i == 0 ? "" : ",", std::uint64_t{1} << i, ":", options.roundup_power2_divisions[i]);
  }
  return out;
}

trace::RecordedSettings SettingsOf(const policy::Options& options) {
  trace::RecordedSettings out;
  out.conf = policy::WithoutKey(options.conf, "plan");  // a replay needs no file: events say what it placed
  if (options.max_split_size_bytes != policy::kUnlimited) out.max_split_size_bytes = options.max_split_size_bytes;
  out.garbage_collection_threshold = options.garbage_collection_threshold;
  out.expandable_segments = options.expandable_segments;
  out.values = {
      {"PYTORCH_CUDA_ALLOC_CONF", out.conf},
      {"max_split_size", out.max_split_size_bytes.has_value() ? absl::StrCat(*out.max_split_size_bytes) : "-1"},
      {"garbage_collection_threshold", absl::StrFormat("%#.15g", options.garbage_collection_threshold)},
      {"expandable_segments", Printed(options.expandable_segments)},
      {"roundup_power2_divisions", Divisions(options)},
      {"large_segment_size", absl::StrCat(options.large_segment_bytes)},
      {"max_non_split_rounding_size", absl::StrCat(options.max_non_split_rounding_bytes)},
      {"throw_on_cudamalloc_oom", Printed(options.throw_on_cudamalloc_oom)},
  };
  return out;
}

}  // namespace

trace::Snapshot RecordedHeadOf(const policy::Options& options, const Limits& limits, int device) {
  trace::Snapshot out;
  out.device_traces.resize(static_cast<std::size_t>(device) + 1);
  out.settings = SettingsOf(options);
  out.traits.has_time = true;
  out.traits.has_stacks = true;
  out.traits.has_requested_bytes = true;
  out.traits.has_pool_ids = true;
  out.traits.has_settings = true;
  out.traits.generation = "our own";
  out.recording.emplace();
  out.recording->compat = std::string(policy::CompatName(options.compat));
  out.recording->free_order = std::string(policy::FreeOrderName(options.free_order));
  out.recording->device = device;
  out.recording->device_total_bytes = limits.total_bytes();
  out.recording->limit_bytes = limits.bytes();
  out.recording->has_calls = true;
  return out;
}

trace::Snapshot RecordedStateOf(const Ledger& ledger, const Limits& limits) {
  trace::Snapshot state = RecordedHeadOf(ledger.options(), limits, 0);
  state.segments = SegmentsOf(ledger.heap());
  state.recording->reservations = ReservationsOf(ledger.heap());
  state.recording->is_complete = true;
  if (ledger.sink() != nullptr) ledger.sink()->NameBlocks(state);
  return state;
}

}  // namespace ashlar::core
