#include "analyzer/formats/native/nsys_database.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "analyzer/formats/native/device_calls.h"
#include "analyzer/formats/sqlite_library.h"
#include "analyzer/formats/utf8.h"

namespace ashlar::formats {
namespace {

constexpr char kEventsTable[] = "CUDA_GPU_MEMORY_USAGE_EVENTS";
constexpr char kRecordIt[] = "record them with nsys profile --cuda-memory-usage=true, then nsys export --type sqlite";

// What the numbers of the columns memKind and memoryOperationType mean: the tables ENUM_CUDA_MEM_KIND and
// ENUM_CUDA_DEV_MEM_EVENT_OPER of an export.
enum NsysMemoryKind { kDeviceMemory = 2, kManagedMemory = 4 };
enum MemoryOperation { kAllocated = 0, kFreed = 1 };

class Query {
 public:
  Query(const SqliteLibrary& sqlite, sqlite3* database, const std::string& sql) : sqlite_(sqlite), database_(database) {
    if (sqlite_.prepare_v2(database, sql.c_str(), -1, &statement_, nullptr) != kSqliteOk) code_ = kFailed;
  }
  ~Query() { sqlite_.finalize(statement_); }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  bool Next() {
    if (code_ == kFailed) return false;
    code_ = sqlite_.step(statement_);
    return code_ == kSqliteRow;
  }
  std::int64_t Number(int column) const { return sqlite_.column_int64(statement_, column); }
  std::string Text(int column) const {
    const auto* text = reinterpret_cast<const char*>(sqlite_.column_text(statement_, column));
    if (text == nullptr) return "";
    return ToUtf8({text, static_cast<std::size_t>(sqlite_.column_bytes(statement_, column))});
  }
  absl::Status status() const {
    if (code_ == kSqliteDone || code_ == kSqliteRow) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("this database of Nsight Systems cannot be read: ",
                                                   ToPrintable(sqlite_.errmsg(database_)), "; export it again"));
  }

 private:
  static constexpr int kFailed = -1;

  const SqliteLibrary& sqlite_;
  sqlite3* database_;
  sqlite3_stmt* statement_ = nullptr;
  int code_ = kSqliteDone;
};

class Database {
 public:
  explicit Database(const SqliteLibrary& sqlite) : sqlite_(sqlite) {}
  ~Database() {
    if (database_ != nullptr) sqlite_.close_v2(database_);
  }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // `bytes` outlive it. It is only read: views, triggers and functions of the file have no part in what is asked.
  absl::Status Open(absl::string_view bytes) {
    const bool is_open =
        sqlite_.open_v2(":memory:", &database_, kSqliteReadWrite | kSqliteCreate, nullptr) == kSqliteOk;
    auto* const data = reinterpret_cast<unsigned char*>(const_cast<char*>(bytes.data()));
    const auto size = static_cast<long long>(bytes.size());
    if (is_open && sqlite_.deserialize(database_, "main", data, size, size, kSqliteReadOnlyBytes) == kSqliteOk) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        "this database (SQLite) cannot be opened: it was cut or damaged, export it again");
  }

  Query Ask(const std::string& sql) const { return Query(sqlite_, database_, sql); }
  // A table itself: a view could be anything.
  bool Has(absl::string_view table) const {
    Query query = Ask(absl::StrCat("SELECT 1 FROM main.sqlite_master WHERE type = 'table' AND name = '", table, "'"));
    return query.Next();
  }

 private:
  const SqliteLibrary& sqlite_;
  sqlite3* database_ = nullptr;
};

class NsysReader {
 public:
  NsysReader(const Database& database, const ReadLimits& limits) : database_(database), calls_(limits.max_events) {}

  absl::StatusOr<trace::Snapshot> Run() {
    if (!database_.Has(kEventsTable)) {
      return absl::InvalidArgumentError(
          absl::StrCat(database_.Has("StringIds") ? "this export of Nsight Systems has no memory events"
                                                  : "this is a database (SQLite), but no export of Nsight Systems",
                       ": ", kRecordIt));
    }
    if (absl::Status status = ChooseProcess(); !status.ok()) return status;
    if (absl::Status status = ReadStacks(); !status.ok()) return status;
    if (absl::Status status = ReadEvents(); !status.ok()) return status;
    calls_.Finish(out_);
    Describe();
    return std::move(out_);
  }

 private:
  static std::string OfDevice() {
    return absl::StrCat(" FROM main.", kEventsTable, " WHERE memKind IN (", static_cast<int>(kDeviceMemory), ", ",
                        static_cast<int>(kManagedMemory), ")");
  }

  absl::Status ChooseProcess() {
    Query query = database_.Ask(absl::StrCat("SELECT globalPid, SUM(bytes), COUNT(*)", OfDevice(),
                                             " AND memoryOperationType = 0 GROUP BY globalPid ORDER BY 2 DESC, 1"));
    bool has_one = false;
    std::uint64_t others = 0;
    while (query.Next()) {
      if (has_one) {
        ++others;
      } else {
        process_ = query.Number(0);
        has_one = true;
      }
    }
    if (absl::Status status = query.status(); !status.ok()) return status;
    calls_.Note("other_processes", "other processes that allocated device memory, left out", others);
    return has_one ? absl::OkStatus()
                   : absl::InvalidArgumentError(
                         absl::StrCat("this export of Nsight Systems has no allocation of device memory: ", kRecordIt));
  }

  // The frames of each chain, innermost first; none where no backtraces were recorded.
  absl::Status ReadStacks() {
    for (const char* table : {"CUDA_CALLCHAINS", "CUPTI_ACTIVITY_KIND_RUNTIME", "StringIds"}) {
      if (!database_.Has(table)) return absl::OkStatus();
    }
    has_stacks_ = true;
    Query query = database_.Ask(
        "SELECT c.id, s.value, m.value FROM main.CUDA_CALLCHAINS c LEFT JOIN main.StringIds s ON s.id = c.symbol "
        "LEFT JOIN main.StringIds m ON m.id = c.module ORDER BY c.id, c.stackDepth");
    std::int64_t chain = 0;
    std::vector<trace::FrameId> frames;
    const auto keep = [&] {
      if (!frames.empty()) stacks_[chain] = out_.stacks.InternStack(frames);
      frames.clear();
    };
    while (query.Next()) {
      if (query.Number(0) != chain) keep();
      chain = query.Number(0);
      frames.push_back(out_.stacks.InternFrame(query.Text(2), 0, query.Text(1)));
    }
    keep();
    if (query.status().ok()) return absl::OkStatus();
    has_stacks_ = false;  // of a version with other columns: the events are there all the same
    return absl::OkStatus();
  }

  absl::Status ReadEvents() {
    const std::string chain =
        has_stacks_
            ? absl::StrCat("(SELECT r.callchainId FROM main.CUPTI_ACTIVITY_KIND_RUNTIME r WHERE r.correlationId = ",
                           kEventsTable, ".correlationId AND r.globalTid / 0x1000000 = ", kEventsTable,
                           ".globalPid / 0x1000000 LIMIT 1)")
            : "NULL";
    Query query =
        database_.Ask(absl::StrCat("SELECT start, deviceId, address, bytes, memoryOperationType, streamId, memKind, ",
                                   chain, OfDevice(), " AND globalPid = ", process_, " ORDER BY start, rowid"));
    while (query.Next()) Add(query);
    return query.status();
  }

  void Add(const Query& row) {
    const auto stack = stacks_.find(row.Number(7));
    const std::int64_t device = row.Number(1);
    const bool is_device = device >= 0 && device < LoggedCalls::kMostDevices;
    const DeviceCall call{row.Number(0) / 1000, is_device ? static_cast<int>(device) : LoggedCalls::kMostDevices,
                          stack == stacks_.end() ? trace::kNoStack : stack->second};
    const auto address = static_cast<std::uint64_t>(row.Number(2));
    if (row.Number(6) == kManagedMemory) ++managed_;
    if (row.Number(4) == kAllocated) {
      calls_.Allocate(call, address, static_cast<std::uint64_t>(row.Number(3)),
                      Stream{static_cast<std::uint64_t>(row.Number(5))});
    } else if (row.Number(4) == kFreed) {
      calls_.Free(call, address);
    } else {
      calls_.Note("unknown_operations", "memory events of kinds that this version does not know, left out");
    }
  }

  void Describe() {
    calls_.Note("managed_memory", "events of managed memory, counted as if all of it lay on the device", managed_);
    out_.traits.has_time = true;
    DescribeDeviceCalls("device calls from Nsight Systems", out_);
  }

  const Database& database_;
  LoggedCalls calls_;
  trace::Snapshot out_;
  absl::flat_hash_map<std::int64_t, trace::StackId> stacks_;  // by chain
  std::int64_t process_ = 0;
  std::uint64_t managed_ = 0;
  bool has_stacks_ = false;
};

}  // namespace

bool IsSqlite(absl::string_view bytes) { return absl::StartsWith(bytes, absl::string_view("SQLite format 3\0", 16)); }

absl::StatusOr<trace::Snapshot> ReadNsysDatabase(absl::string_view bytes, const ReadLimits& limits) {
  const absl::StatusOr<const SqliteLibrary*> sqlite = SqliteLibrary::Load();
  if (!sqlite.ok()) return sqlite.status();
  if ((*sqlite)->deserialize == nullptr) {
    return absl::UnavailableError("the SQLite here cannot read a database from memory: install 3.36 or newer");
  }
  Database database(**sqlite);
  if (absl::Status status = database.Open(bytes); !status.ok()) return status;
  return NsysReader(database, limits).Run();
}

}  // namespace ashlar::formats
