// Chrome traces of torch.profiler (`export_chrome_trace`, with `profile_memory=True`): their `[memory]` events as
// requests.
//
//   {"ph": "i", "name": "[memory]", "ts": 5005575108890.085, "args": {"Total Reserved": 23068672,
//    "Total Allocated": 18099200, "Bytes": 524288, "Addr": 23089202210816, "Device Id": 0, "Device Type": 1}}
//
// `Bytes` is the size of the block, below 0 for a free. The events of one device are read, that with most bytes; those
// of the host and of other devices are left out, and so are frees of what was there before the trace began: the source
// and the notes of the requests count them, and say what the trace's own totals were. Streams are not in such a trace.
//
// Pure functions, safe from any thread.
#ifndef ASHLAR_ANALYZER_FORMATS_JSON_CHROME_TRACE_H_
#define ASHLAR_ANALYZER_FORMATS_JSON_CHROME_TRACE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/trace/request.h"
#include "analyzer/formats/read_limits.h"

namespace ashlar::formats {

// By the beginning: a JSON object with "traceEvents", or an array of such events.
bool IsChromeTrace(absl::string_view bytes);

// InvalidArgument: no JSON (with the byte), or no memory events of a device in it.
absl::StatusOr<trace::RequestTrace> ReadChromeTrace(absl::string_view bytes, const ReadLimits& limits = {});

}  // namespace ashlar::formats

#endif  // ASHLAR_ANALYZER_FORMATS_JSON_CHROME_TRACE_H_
