// A run as rows of tables: docs/guide/tables.md has the schema. Ids are those of the run (a block's is its index in
// Timeline::blocks()), an event of NULL lies outside the window, a flag is 0 or 1.
#ifndef ASHLAR_COMMANDS_EXPORT_TABLES_H_
#define ASHLAR_COMMANDS_EXPORT_TABLES_H_

#include <cstdint>
#include <initializer_list>
#include <variant>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "allocator/trace/stack_table.h"
#include "commands/export/exported_run.h"

namespace ashlar::exports {

// Rows of tables, wherever they go: a database, files of CSV. All tables are those of tables.h, known from the start;
// their rows may come mixed.
//
//   sink.Add(TableId::kFrames, {std::int64_t{0}, absl::string_view("model.py"), std::int64_t{12}, Cell{}});

// Nothing (NULL): what the trace does not say.
using Cell = std::variant<std::monostate, std::int64_t, double, absl::string_view>;

enum class TableId : std::uint8_t {
  kMeta,
  kAccounting,
  kSegments,
  kSegmentExtents,
  kBlocks,
  kEvents,
  kFrames,
  kStacks,
  kStackFrames,
  kPhases,
  kWhatIf,
  kCauses,
  kHolders,
};
inline constexpr int kTableCount = 13;

enum class TableColumnType : std::uint8_t { kInteger, kReal, kText };

struct TableColumn {
  const char* name;
  TableColumnType type;
};

struct TableDefinition {
  const char* name;
  absl::Span<const TableColumn> columns;
};

// In the order of TableId.
absl::Span<const TableDefinition> TableDefinitions();

class TableSink {
 public:
  virtual ~TableSink() = default;
  // A cell a column. Failures are kept, and told by the sink's own end.
  virtual void AddRow(TableId table, absl::Span<const Cell> cells) = 0;
  void Add(TableId table, std::initializer_list<Cell> cells) { AddRow(table, {cells.begin(), cells.size()}); }
};

// The run's timeline and, where it has one, its explanation.
void WriteRunTables(const ExportedRun& run, TableSink& out);

// The stacks of all runs of an input: once for the first of them.
void WriteStackTables(const trace::StackTable& stacks, TableSink& out);

}  // namespace ashlar::exports

#endif  // ASHLAR_COMMANDS_EXPORT_TABLES_H_
