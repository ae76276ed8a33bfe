#include "analyzer/formats/sqlite_library.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "analyzer/formats/system_library.h"

namespace ashlar::formats {
namespace {

constexpr char kLibrary[] = "libsqlite3.so.0";

absl::StatusOr<SqliteLibrary> LoadFunctions() {
  const SystemLibrary library(kLibrary);
  if (!library.IsHere()) {
    return absl::UnavailableError(
        absl::StrCat(kLibrary,
                     " is not here: install SQLite (Debian, Ubuntu: apt-get install libsqlite3-0); tables are written "
                     "without it as CSV, with --to tables"));
  }
  SqliteLibrary out{};
  const bool has_all =
      library.Find("sqlite3_open_v2", out.open_v2) && library.Find("sqlite3_close_v2", out.close_v2) &&
      library.Find("sqlite3_errmsg", out.errmsg) && library.Find("sqlite3_exec", out.exec) &&
      library.Find("sqlite3_prepare_v2", out.prepare_v2) && library.Find("sqlite3_bind_int64", out.bind_int64) &&
      library.Find("sqlite3_bind_double", out.bind_double) && library.Find("sqlite3_bind_text", out.bind_text) &&
      library.Find("sqlite3_bind_null", out.bind_null) && library.Find("sqlite3_step", out.step) &&
      library.Find("sqlite3_reset", out.reset) && library.Find("sqlite3_finalize", out.finalize) &&
      library.Find("sqlite3_column_int64", out.column_int64) && library.Find("sqlite3_column_text", out.column_text) &&
      library.Find("sqlite3_column_bytes", out.column_bytes);
  library.Find("sqlite3_deserialize", out.deserialize);
  if (has_all) return out;
  return absl::UnavailableError(absl::StrCat(kLibrary, " lacks functions of SQLite 3.7: install a newer one"));
}

}  // namespace

absl::StatusOr<const SqliteLibrary*> SqliteLibrary::Load() {
  static const auto* const loaded = new absl::StatusOr<SqliteLibrary>(LoadFunctions());
  if (!loaded->ok()) return loaded->status();
  return &**loaded;
}

}  // namespace ashlar::formats
