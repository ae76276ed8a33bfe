// Where the exported functions of another process are: read from its memory as its dynamic linker laid it out, so that
// it need not have its files here (containers, deleted files).
//
//   absl::StatusOr<LoadedFunctions> functions = LoadedFunctions::Of(pid);
//   functions->Find("Py_AddPendingCall");    // an address in that process, or nullopt
//
// Layout: elf(5), and the GNU hash table of https://flapenguin.me/elf-dt-gnu-hash. 64-bit processes alone.
#ifndef ASHLAR_LAUNCHER_ATTACH_LOADED_FUNCTIONS_H_
#define ASHLAR_LAUNCHER_ATTACH_LOADED_FUNCTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ashlar::cli {

// What a file takes of a process's addresses.
struct LoadedObject {
  std::string path;
  std::uint64_t begin = 0;  // its ELF header
  std::uint64_t code_begin = 0, code_end = 0;
};

class LoadedFunctions {
 public:
  // PermissionDenied where the system does not let this process look into that one; the line says what would.
  static absl::StatusOr<LoadedFunctions> Of(std::int64_t pid);
  ~LoadedFunctions();
  LoadedFunctions(LoadedFunctions&& other) noexcept;
  LoadedFunctions(const LoadedFunctions&) = delete;
  LoadedFunctions& operator=(const LoadedFunctions&) = delete;

  const std::vector<LoadedObject>& objects() const { return objects_; }
  // Whether a file is loaded whose name, without its folder, begins so.
  bool HasLoaded(absl::string_view name_begins) const;
  // Of the first object, in the order of addresses, that defines the name.
  std::optional<std::uint64_t> Find(absl::string_view name) const;
  // The object whose code the address lies in; nullptr: none.
  const LoadedObject* CodeAt(std::uint64_t address) const;

 private:
  LoadedFunctions(int memory, std::vector<LoadedObject> objects) : memory_(memory), objects_(std::move(objects)) {}

  int memory_;  // /proc/PID/mem
  std::vector<LoadedObject> objects_;
};

// Why the system does not let this process look into that one, and what would change it.
absl::Status NotAllowed(std::int64_t pid);

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_ATTACH_LOADED_FUNCTIONS_H_
