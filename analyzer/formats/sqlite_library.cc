#include "analyzer/formats/sqlite_library.h"

#include <dlfcn.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace ashlar::readers {
namespace {

constexpr char kLibrary[] = "libsqlite3.so.0";

template <typename Function>
bool Find(void* library, const char* name, Function& out) {
  out = reinterpret_cast<Function>(dlsym(library, absl::StrCat("sqlite3_", name).c_str()));
  return out != nullptr;
}

absl::StatusOr<SqliteLibrary> LoadFunctions() {
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::UnavailableError(
        absl::StrCat(kLibrary,
                     " is not here: install SQLite (Debian, Ubuntu: apt-get install libsqlite3-0); tables are written "
                     "without it as CSV, with --to tables"));
  }
  SqliteLibrary out{};
  const bool has_all = Find(library, "open_v2", out.open_v2) && Find(library, "close_v2", out.close_v2) &&
                       Find(library, "errmsg", out.errmsg) && Find(library, "exec", out.exec) &&
                       Find(library, "prepare_v2", out.prepare_v2) && Find(library, "bind_int64", out.bind_int64) &&
                       Find(library, "bind_double", out.bind_double) && Find(library, "bind_text", out.bind_text) &&
                       Find(library, "bind_null", out.bind_null) && Find(library, "step", out.step) &&
                       Find(library, "reset", out.reset) && Find(library, "finalize", out.finalize) &&
                       Find(library, "column_int64", out.column_int64) &&
                       Find(library, "column_text", out.column_text) && Find(library, "column_bytes", out.column_bytes);
  Find(library, "deserialize", out.deserialize);
  if (has_all) return out;
  return absl::UnavailableError(absl::StrCat(kLibrary, " lacks functions of SQLite 3.7: install a newer one"));
}

}  // namespace

absl::StatusOr<const SqliteLibrary*> SqliteLibrary::Load() {
  static const auto* const loaded = new absl::StatusOr<SqliteLibrary>(LoadFunctions());
  if (!loaded->ok()) return loaded->status();
  return &**loaded;
}

}  // namespace ashlar::readers
