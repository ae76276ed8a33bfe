#include "analyzer/exports/csv_tables.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "analyzer/exports/flat_text.h"

namespace ashlar::exports {
namespace {

void AppendCell(const Cell& cell, std::string& out) {
  if (const auto* number = std::get_if<std::int64_t>(&cell)) absl::StrAppend(&out, *number);
  if (const auto* real = std::get_if<double>(&cell)) absl::StrAppendFormat(&out, "%.9g", *real);
  if (const auto* text = std::get_if<absl::string_view>(&cell)) AppendCsvText(*text, out);
}

}  // namespace

CsvTables::CsvTables(const std::function<ByteSink&(const TableDefinition&)>& sink_of) {
  for (std::size_t i = 0; i < sinks_.size(); ++i) {
    const TableDefinition& table = TableDefinitions()[i];
    sinks_[i] = &sink_of(table);
    line_.clear();
    for (const TableColumn& column : table.columns) absl::StrAppend(&line_, line_.empty() ? "" : ",", column.name);
    sinks_[i]->Append(line_ + "\n");
  }
}

void CsvTables::AddRow(TableId table, absl::Span<const Cell> cells) {
  line_.clear();
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line_ += ',';
    AppendCell(cells[i], line_);
  }
  line_ += '\n';
  sinks_[static_cast<std::size_t>(table)]->Append(line_);
}

}  // namespace ashlar::exports
