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
#include "commands/export/tables.h"

struct sqlite3;  // as sqlite3.h names them
struct sqlite3_stmt;

namespace ashlar::exports {

// The functions of SQLite's C interface that a writer needs, found in the system's libsqlite3 when it is first asked
// for: the program builds and runs without it. Their contracts: https://www.sqlite.org/c3ref/funclist.html.
//
//   absl::StatusOr<const SqliteLibrary*> sqlite = SqliteLibrary::Load();
//   (*sqlite)->open_v2("out.db", &database, kSqliteReadWrite | kSqliteCreate, nullptr);

// Values of sqlite3.h, which its interface keeps for good.
inline constexpr int kSqliteOk = 0;
inline constexpr int kSqliteDone = 101;
inline constexpr int kSqliteReadWrite = 2;
inline constexpr int kSqliteCreate = 4;

struct SqliteLibrary {
  int (*open_v2)(const char* file, sqlite3** database, int flags, const char* vfs);
  int (*close_v2)(sqlite3* database);
  const char* (*errmsg)(sqlite3* database);
  int (*exec)(sqlite3* database, const char* sql, int (*row)(void*, int, char**, char**), void* of_row, char** error);
  int (*prepare_v2)(sqlite3* database, const char* sql, int bytes, sqlite3_stmt** statement, const char** rest);
  int (*bind_int64)(sqlite3_stmt* statement, int column, std::int64_t value);
  int (*bind_double)(sqlite3_stmt* statement, int column, double value);
  int (*bind_text)(sqlite3_stmt* statement, int column, const char* text, int bytes, void (*destructor)(void*));
  int (*bind_null)(sqlite3_stmt* statement, int column);
  int (*step)(sqlite3_stmt* statement);
  int (*reset)(sqlite3_stmt* statement);
  int (*finalize)(sqlite3_stmt* statement);

  // Unavailable, with what to install, where the library is not there. It stays loaded.
  static absl::StatusOr<const SqliteLibrary*> Load();
};

}  // namespace ashlar::exports

namespace ashlar::exports {

class SqliteTables : public TableSink {
 public:
  // `path` is no file, or an empty one.
  static absl::StatusOr<std::unique_ptr<SqliteTables>> Create(const std::string& path);
  ~SqliteTables() override;

  void AddRow(TableId table, absl::Span<const Cell> cells) override;
  absl::Status Finish();

 private:
  SqliteTables(const SqliteLibrary* sqlite, sqlite3* database) : sqlite_(sqlite), database_(database) {}

  absl::Status Failure() const;
  absl::Status Run(const std::string& sql);
  absl::Status Prepare(const std::string& sql, sqlite3_stmt** out);
  void Close();

  const SqliteLibrary* sqlite_;
  sqlite3* database_;
  std::array<sqlite3_stmt*, kTableCount> inserts_{};
  absl::Status status_;
};

}  // namespace ashlar::exports

#endif  // ASHLAR_COMMANDS_EXPORT_SQLITE_TABLES_H_
