// What is exported as CSV: events, tables, and the log of RMM.
#ifndef ASHLAR_COMMANDS_EXPORT_CSV_H_
#define ASHLAR_COMMANDS_EXPORT_CSV_H_

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "allocator/base/byte_sink.h"
#include "allocator/trace/snapshot.h"
#include "commands/export/exported_run.h"
#include "commands/export/tables.h"

namespace ashlar::exports {

// Events as CSV (RFC 4180): a line an event, with the sums after it.
//
//   device,event,time_us,action,address,size_bytes,block_bytes,stream,pool,line,label,allocated_bytes,active_bytes,...
//   0,0,1762500000000000,segment_alloc,139637976727552,20971520,,0,,model.py:5 __init__,,0,0,20971520,0
//
// What the trace does not say is an empty field. `size_bytes` is what trace/event.h says: requested bytes of an alloc.

void WriteEventCsvHeader(ByteSink& out);
void WriteEventCsv(const ExportedRun& run, ByteSink& out);

// Tables as files of CSV (RFC 4180) with a header line each; NULL is an empty field.
//
//   CsvTables tables([&](const TableDefinition& table) -> ByteSink& { return FileNamed(table.name); });
class CsvTables : public TableSink {
 public:
  // `sink_of` is asked once for each table; what it gives must outlive this.
  explicit CsvTables(const std::function<ByteSink&(const TableDefinition&)>& sink_of);
  void AddRow(TableId table, absl::Span<const Cell> cells) override;

 private:
  std::array<ByteSink*, kTableCount> sinks_{};
  std::string line_;
};

// What a run asked for as a log of RMM (formats/rmm/rmm_log.h). Blocks older than the trace come first; a free
// stands where the program asked for it.

// What the log cannot hold, counted.
std::vector<trace::Note> WriteRmmLog(const ExportedRun& run, ByteSink& out);

}  // namespace ashlar::exports

#endif  // ASHLAR_COMMANDS_EXPORT_CSV_H_
