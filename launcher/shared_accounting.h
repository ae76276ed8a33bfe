// Reads the accounting that the processes of a dry run share (the file `books` of the run folder): they say what a
// process that was killed can no longer say.
//
//   std::optional<SharedAccounting> books = ReadSharedAccounting(folder);   // nullopt: no process opened a device
//   books->peaks[0];                                              // bytes of device 0, of all processes and contexts
//
// The layout is SharedMachine's (hollow/model/shared_machine.cc), told by its first word; a test holds them together.
#ifndef ASHLAR_LAUNCHER_SHARED_ACCOUNTING_H_
#define ASHLAR_LAUNCHER_SHARED_ACCOUNTING_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <system_error>

namespace ashlar::cli {

struct SharedAccounting {
  std::map<int, std::uint64_t> peaks;                              // by device; those that were used
  std::map<std::int64_t, std::map<int, std::uint64_t>> left_held;  // by process: what those held that are dead and
                                                                   // closed no accounting
  bool operator==(const SharedAccounting&) const = default;
};

std::optional<SharedAccounting> ReadSharedAccounting(const std::string& folder);

// A program that runs may leave anything in its run folder, also under the names that are read there: nobody waits for
// a pipe, or follows a link.
//
//   if (IsLeftFile(folder + "/books")) ...

inline bool IsLeftFile(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(std::filesystem::symlink_status(path, ignored));
}

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_SHARED_ACCOUNTING_H_
