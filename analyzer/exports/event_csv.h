// Events as CSV (RFC 4180): a line an event, with the sums after it.
//
//   device,event,time_us,action,address,size_bytes,block_bytes,stream,pool,line,label,allocated_bytes,active_bytes,...
//   0,0,1762500000000000,segment_alloc,139637976727552,20971520,,0,,model.py:5 __init__,,0,0,20971520,0
//
// What the trace does not say is an empty field. `size_bytes` is what trace/event.h says: requested bytes of an alloc.
#ifndef ASHLAR_ANALYZER_EXPORTS_EVENT_CSV_H_
#define ASHLAR_ANALYZER_EXPORTS_EVENT_CSV_H_

#include "allocator/base/byte_sink.h"
#include "analyzer/exports/exported_run.h"

namespace ashlar::exports {

void WriteEventCsvHeader(ByteSink& out);
void WriteEventCsv(const ExportedRun& run, ByteSink& out);

}  // namespace ashlar::exports

#endif  // ASHLAR_ANALYZER_EXPORTS_EVENT_CSV_H_
