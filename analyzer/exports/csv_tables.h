// Tables as files of CSV (RFC 4180) with a header line each; NULL is an empty field.
//
//   CsvTables tables([&](const TableDefinition& table) -> ByteSink& { return FileNamed(table.name); });
#ifndef ASHLAR_ANALYZER_EXPORTS_CSV_TABLES_H_
#define ASHLAR_ANALYZER_EXPORTS_CSV_TABLES_H_

#include <array>
#include <functional>
#include <string>

#include "allocator/base/byte_sink.h"
#include "analyzer/exports/table_sink.h"

namespace ashlar::exports {

class CsvTables : public TableSink {
 public:
  // `sink_of` is asked once for each table; what it gives must outlive this.
  explicit CsvTables(const std::function<ByteSink&(const TableDefinition&)>& sink_of);
  void AddRow(TableId table, absl::Span<const Cell> cells) override;

 private:
  std::array<ByteSink*, kTableCount> sinks_{};
  std::string line_;
};

}  // namespace ashlar::exports

#endif  // ASHLAR_ANALYZER_EXPORTS_CSV_TABLES_H_
