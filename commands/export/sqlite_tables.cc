#include "commands/export/sqlite_tables.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "analyzer/formats/utf8.h"

namespace ashlar::exports {

using formats::kSqliteCreate;
using formats::kSqliteDone;
using formats::kSqliteOk;
using formats::kSqliteReadWrite;

namespace {

// What queries look for; made after the rows, which is quicker.
constexpr const char* kIndices[] = {"CREATE INDEX blocks_by_stack ON blocks(stack)",
                                    "CREATE INDEX blocks_by_alloc ON blocks(device, alloc_event)",
                                    "CREATE INDEX events_by_number ON events(device, event)",
                                    "CREATE INDEX stack_frames_by_stack ON stack_frames(stack)"};

const char* TypeName(TableColumnType type) {
  switch (type) {
    case TableColumnType::kInteger:
      return "INTEGER";
    case TableColumnType::kReal:
      return "REAL";
    case TableColumnType::kText:
      return "TEXT";
  }
  return "";
}

std::string CreateSql(const TableDefinition& table) {
  std::string columns;
  for (const TableColumn& column : table.columns) {
    absl::StrAppend(&columns, columns.empty() ? "" : ", ", column.name, " ", TypeName(column.type));
  }
  return absl::StrCat("CREATE TABLE ", table.name, "(", columns, ")");
}

std::string InsertSql(const TableDefinition& table) {
  std::string marks;
  for (std::size_t i = 0; i < table.columns.size(); ++i) absl::StrAppend(&marks, i == 0 ? "?" : ",?");
  return absl::StrCat("INSERT INTO ", table.name, " VALUES(", marks, ")");
}

}  // namespace

absl::StatusOr<std::unique_ptr<SqliteTables>> SqliteTables::Create(const std::string& path) {
  const absl::StatusOr<const formats::SqliteLibrary*> sqlite = formats::SqliteLibrary::Load();
  if (!sqlite.ok()) return sqlite.status();
  sqlite3* database = nullptr;
  const int opened = (*sqlite)->open_v2(path.c_str(), &database, kSqliteReadWrite | kSqliteCreate, nullptr);
  std::unique_ptr<SqliteTables> out(new SqliteTables(*sqlite, database));
  if (opened != kSqliteOk) return out->Failure();
  absl::Status status = out->Run("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA user_version=1; BEGIN");
  for (std::size_t i = 0; i < kTableCount; ++i) {
    status.Update(out->Run(CreateSql(TableDefinitions()[i])));
    if (status.ok()) status = out->Prepare(InsertSql(TableDefinitions()[i]), &out->inserts_[i]);
  }
  if (!status.ok()) return status;
  return out;
}

SqliteTables::~SqliteTables() { Close(); }

absl::Status SqliteTables::Failure() const {
  return absl::UnavailableError(
      absl::StrCat("SQLite: ", database_ == nullptr ? "no memory" : sqlite_->errmsg(database_)));
}

absl::Status SqliteTables::Run(const std::string& sql) {
  const bool is_done = sqlite_->exec(database_, sql.c_str(), nullptr, nullptr, nullptr) == kSqliteOk;
  return is_done ? absl::OkStatus() : Failure();
}

absl::Status SqliteTables::Prepare(const std::string& sql, sqlite3_stmt** out) {
  const bool is_done = sqlite_->prepare_v2(database_, sql.c_str(), -1, out, nullptr) == kSqliteOk;
  return is_done ? absl::OkStatus() : Failure();
}

void SqliteTables::AddRow(TableId table, absl::Span<const Cell> cells) {
  if (!status_.ok()) return;
  sqlite3_stmt* const insert = inserts_[static_cast<std::size_t>(table)];
  int column = 0;
  for (const Cell& cell : cells) {
    ++column;
    if (const auto* number = std::get_if<std::int64_t>(&cell)) {
      sqlite_->bind_int64(insert, column, *number);
    } else if (const auto* real = std::get_if<double>(&cell)) {
      sqlite_->bind_double(insert, column, *real);
    } else if (const auto* text = std::get_if<absl::string_view>(&cell)) {
      // Read again by step alone, which comes before the text goes.
      sqlite_->bind_text(insert, column, text->data(), static_cast<int>(text->size()), nullptr);
    } else {
      sqlite_->bind_null(insert, column);
    }
  }
  if (sqlite_->step(insert) != kSqliteDone) status_ = Failure();
  sqlite_->reset(insert);
}

absl::Status SqliteTables::Finish() {
  for (const char* index : kIndices) {
    if (status_.ok()) status_ = Run(index);
  }
  if (status_.ok()) status_ = Run("COMMIT");
  Close();
  return status_;
}

void SqliteTables::Close() {
  if (database_ == nullptr) return;
  for (sqlite3_stmt*& insert : inserts_) {
    sqlite_->finalize(insert);
    insert = nullptr;
  }
  sqlite_->close_v2(database_);
  database_ = nullptr;
}

}  // namespace ashlar::exports
