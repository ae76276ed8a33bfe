// Tables as a SQLite database: one transaction, indices at the end.
//
//   absl::StatusOr<std::unique_ptr<SqliteTables>> tables = SqliteTables::Create("out.db");
//   WriteRunTables(run, **tables);
//   absl::Status status = (*tables)->Finish();
//
// The file is written in place and without a journal: give a name that nobody reads yet. Errors are Unavailable, in
// SQLite's words. Not thread-safe.
#ifndef ASHLAR_COMMANDS_EXPORT_SQLITE_TABLES_H_
#define ASHLAR_COMMANDS_EXPORT_SQLITE_TABLES_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "analyzer/formats/sqlite_library.h"
#include "commands/export/tables.h"

namespace ashlar::exports {

class SqliteTables : public TableSink {
 public:
  // `path` is no file, or an empty one.
  static absl::StatusOr<std::unique_ptr<SqliteTables>> Create(const std::string& path);
  ~SqliteTables() override;

  void AddRow(TableId table, absl::Span<const Cell> cells) override;
  absl::Status Finish();

 private:
  SqliteTables(const formats::SqliteLibrary* sqlite, sqlite3* database) : sqlite_(sqlite), database_(database) {}

  absl::Status Failure() const;
  absl::Status Run(const std::string& sql);
  absl::Status Prepare(const std::string& sql, sqlite3_stmt** out);
  void Close();

  const formats::SqliteLibrary* sqlite_;
  sqlite3* database_;
  std::array<sqlite3_stmt*, kTableCount> inserts_{};
  absl::Status status_;
};

}  // namespace ashlar::exports

#endif  // ASHLAR_COMMANDS_EXPORT_SQLITE_TABLES_H_
