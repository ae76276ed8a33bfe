// The functions of SQLite's C interface that are needed here, found in the system's libsqlite3 when it is first asked
// for: the program builds and runs without it. Their contracts: https://www.sqlite.org/c3ref/funclist.html.
//
//   absl::StatusOr<const SqliteLibrary*> sqlite = SqliteLibrary::Load();
//   (*sqlite)->open_v2("out.db", &database, kSqliteReadWrite | kSqliteCreate, nullptr);
#ifndef ASHLAR_ANALYZER_FORMATS_SQLITE_LIBRARY_H_
#define ASHLAR_ANALYZER_FORMATS_SQLITE_LIBRARY_H_

#include <cstdint>

#include "absl/status/statusor.h"

struct sqlite3;  // as sqlite3.h names them
struct sqlite3_stmt;

namespace ashlar::formats {

// Values of sqlite3.h, which its interface keeps for good.
inline constexpr int kSqliteOk = 0;
inline constexpr int kSqliteRow = 100;
inline constexpr int kSqliteDone = 101;
inline constexpr int kSqliteReadOnlyBytes = 4;  // SQLITE_DESERIALIZE_READONLY
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

  long long (*column_int64)(sqlite3_stmt* statement, int column);
  const unsigned char* (*column_text)(sqlite3_stmt* statement, int column);
  int (*column_bytes)(sqlite3_stmt* statement, int column);
  // A database of bytes in memory; nullptr: this library is older than 3.23, or was built without it.
  int (*deserialize)(sqlite3* database, const char* schema, unsigned char* bytes, long long size, long long room,
                     unsigned flags);

  // Unavailable, with what to install, where the library is not there. It stays loaded.
  static absl::StatusOr<const SqliteLibrary*> Load();
};

}  // namespace ashlar::formats

#endif  // ASHLAR_ANALYZER_FORMATS_SQLITE_LIBRARY_H_
