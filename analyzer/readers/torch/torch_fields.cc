#include "analyzer/readers/torch/torch_fields.h"

#include <algorithm>
#include <array>

namespace ashlar::readers {
namespace {

// In the order of Field.
constexpr std::array<absl::string_view, kFieldCount> kNames = {
    "?",
    "segments",
    "device_traces",
    "allocator_settings",
    "external_annotations",
    "host_segments",
    "host_traces",
    "device",
    "address",
    "total_size",
    "allocated_size",
    "active_size",
    "requested_size",
    "stream",
    "segment_type",
    "segment_pool_id",
    "is_expandable",
    "blocks",
    "size",
    "state",
    "history",
    "real_size",
    "action",
    "addr",
    "device_free",
    "time_us",
    "compile_context",
    "user_metadata",
    "internal_metadata",
    "pool_id",
    "stage",
    "frames",
    "name",
    "filename",
    "line",
    "fx_node_op",
    "fx_node_name",
    "fx_node_target",
    "fx_original_trace",
};

}  // namespace

absl::string_view FieldName(Field field) { return kNames[static_cast<std::size_t>(field)]; }

std::uint8_t FieldNames::Look(const pickle::Value& key) const {
  const absl::string_view text = document_.Text(key);
  const auto found = std::find(kNames.begin() + 1, kNames.end(), text);
  return found == kNames.end() ? 0 : static_cast<std::uint8_t>(found - kNames.begin());
}

}  // namespace ashlar::readers
