// What a run asked for as a log of RMM (readers/rmm/rmm_log_writer.h). Blocks older than the trace come first; a free
// stands where the program asked for it.
#ifndef ASHLAR_ANALYZER_EXPORTS_RMM_EXPORT_H_
#define ASHLAR_ANALYZER_EXPORTS_RMM_EXPORT_H_

#include <vector>

#include "allocator/base/byte_sink.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/exports/exported_run.h"

namespace ashlar::exports {

// What the log cannot hold, counted.
std::vector<trace::Note> WriteRmmLog(const ExportedRun& run, ByteSink& out);

}  // namespace ashlar::exports

#endif  // ASHLAR_ANALYZER_EXPORTS_RMM_EXPORT_H_
