#include "analyzer/exports/csv_tables.h"

#include <array>
#include <charconv>
#include <string>

#include "absl/strings/str_cat.h"
#include "analyzer/exports/flat_text.h"

namespace ashlar::exports {
namespace {

// With as few digits as read back to the same number.
void AppendReal(double real, std::string& out) {
  std::array<char, 32> digits;
  out.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), real).ptr);
}

void AppendCell(const Cell& cell, std::string& out) {
  if (const auto* number = std::get_if<std::int64_t>(&cell)) absl::StrAppend(&out, *number);
  if (const auto* real = std::get_if<double>(&cell)) AppendReal(*real, out);
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
