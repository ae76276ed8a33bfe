// An input in a format for another tool: `ashlar convert` (docs/guide/convert.md). All devices that the trace used are
// written, or the one that the settings name.
//
//   absl::StatusOr<std::vector<trace::Note>> notes = Export(input, ExportFormat::kPerfetto, settings, out);
//
// Lists of requests are replayed under the settings first. The notes say what the format does not hold.
#ifndef ASHLAR_COMMANDS_EXPORT_EXPORT_H_
#define ASHLAR_COMMANDS_EXPORT_EXPORT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/base/byte_sink.h"
#include "allocator/trace/snapshot.h"
#include "commands/export/tables.h"
#include "commands/shared/input.h"
#include "commands/shared/replay_settings.h"

namespace ashlar::exports {

enum class ExportFormat : std::uint8_t {
  kPerfetto,
  kFolded,
  kSpeedscope,
  kOpenMetrics,
  kEvents,  // CSV
  kRmmLog,  // of one device: the one that holds most, where the settings name none
};

// InvalidArgument for an input that holds no trace; else the errors of TraceInput and Explain.
absl::StatusOr<std::vector<trace::Note>> Export(const answers::Input& input, ExportFormat format,
                                                const answers::ReplaySettings& settings, ByteSink& out);

// The tables of tables.h.
absl::StatusOr<std::vector<trace::Note>> ExportTables(const answers::Input& input,
                                                      const answers::ReplaySettings& settings, TableSink& out);

}  // namespace ashlar::exports

#endif  // ASHLAR_COMMANDS_EXPORT_EXPORT_H_
