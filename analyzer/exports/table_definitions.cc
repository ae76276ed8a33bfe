#include "analyzer/exports/table_sink.h"

namespace ashlar::exports {
namespace {

constexpr ColumnType kInteger = ColumnType::kInteger, kReal = ColumnType::kReal, kText = ColumnType::kText;

constexpr TableColumn kMeta[] = {{"device", kInteger}, {"key", kText}, {"value", kText}};
constexpr TableColumn kAccounting[] = {{"device", kInteger}, {"part", kText}, {"bytes", kInteger}};
constexpr TableColumn kSegments[] = {
    {"device", kInteger}, {"segment", kInteger},     {"address", kInteger},   {"most_bytes", kInteger},
    {"stream", kInteger}, {"pool", kText},           {"is_small", kInteger},  {"is_expandable", kInteger},
    {"stack", kInteger},  {"begin_event", kInteger}, {"end_event", kInteger}, {"bytes_at_moment", kInteger}};
constexpr TableColumn kSegmentExtents[] = {
    {"device", kInteger}, {"segment", kInteger}, {"event", kInteger}, {"address", kInteger}, {"size_bytes", kInteger}};
constexpr TableColumn kBlocks[] = {{"device", kInteger},
                                   {"block", kInteger},
                                   {"segment", kInteger},
                                   {"address", kInteger},
                                   {"size_bytes", kInteger},
                                   {"requested_bytes", kInteger},
                                   {"stream", kInteger},
                                   {"pool", kText},
                                   {"is_small", kInteger},
                                   {"stack", kInteger},
                                   {"alloc_event", kInteger},
                                   {"free_requested_event", kInteger},
                                   {"free_completed_event", kInteger},
                                   {"state_at_moment", kText}};
constexpr TableColumn kEvents[] = {{"device", kInteger},          {"event", kInteger},
                                   {"time_us", kInteger},         {"action", kText},
                                   {"address", kInteger},         {"size_bytes", kInteger},
                                   {"block", kInteger},           {"stream", kInteger},
                                   {"stack", kInteger},           {"label", kText},
                                   {"allocated_bytes", kInteger}, {"active_bytes", kInteger},
                                   {"reserved_bytes", kInteger},  {"requested_bytes", kInteger}};
constexpr TableColumn kFrames[] = {{"frame", kInteger}, {"file", kText}, {"line", kInteger}, {"function", kText}};
constexpr TableColumn kStacks[] = {{"stack", kInteger}, {"line", kText}};
constexpr TableColumn kStackFrames[] = {{"stack", kInteger}, {"depth", kInteger}, {"frame", kInteger}};
constexpr TableColumn kPhases[] = {{"device", kInteger}, {"kind", kText},           {"number", kInteger},
                                   {"name", kText},      {"begin_event", kInteger}, {"end_event", kInteger}};
constexpr TableColumn kWhatIf[] = {{"device", kInteger},
                                   {"number", kInteger},
                                   {"conf", kText},
                                   {"is_baseline", kInteger},
                                   {"peak_reserved_bytes", kInteger},
                                   {"peak_allocated_bytes", kInteger},
                                   {"failures", kInteger},
                                   {"driver_calls", kInteger},
                                   {"retries", kInteger},
                                   {"device_seconds", kReal},
                                   {"feasible", kInteger},
                                   {"gets_past", kInteger},
                                   {"risks", kText}};
constexpr TableColumn kCauses[] = {{"device", kInteger}, {"number", kInteger},  {"name", kText},
                                   {"finding", kText},   {"confidence", kText}, {"bytes", kInteger},
                                   {"sentence", kText},  {"evidence", kText},   {"counter_evidence", kText},
                                   {"missing", kText},   {"lines", kText}};

constexpr TableDefinition kTables[] = {{"meta", kMeta},
                                       {"accounting", kAccounting},
                                       {"segments", kSegments},
                                       {"segment_extents", kSegmentExtents},
                                       {"blocks", kBlocks},
                                       {"events", kEvents},
                                       {"frames", kFrames},
                                       {"stacks", kStacks},
                                       {"stack_frames", kStackFrames},
                                       {"phases", kPhases},
                                       {"what_if", kWhatIf},
                                       {"causes", kCauses}};
static_assert(sizeof(kTables) / sizeof(kTables[0]) == kTableCount);

}  // namespace

absl::Span<const TableDefinition> TableDefinitions() { return kTables; }

}  // namespace ashlar::exports
