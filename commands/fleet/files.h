// The files of a fleet: what folders, patterns and names on the command line stand for.
//
//   absl::StatusOr<FileListing> listing = ListFiles({"snapshots", "other/rank*.pickle"});
//   for (const FileStamp& file : listing->files) ...   // in the order of their names, numbers by value
//
// Of a folder and its subfolders it takes what ends as traces do (kTraceEndings, each also with .gz), and counts the
// rest. A file with several names counts once, by a name that goes over no link where it has one. What ends as traces
// do and is none (a link to nothing, a pipe), linked folders, and folders below that cannot be read are named.
// NotFound, with the text, where an input stands for nothing.
#ifndef ASHLAR_COMMANDS_FLEET_FILES_H_
#define ASHLAR_COMMANDS_FLEET_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ashlar::fleet {

inline constexpr absl::string_view kTraceEndings[] = {".pickle", ".pkl", ".ashlar", ".trace", ".csv"};

// A file as it lay there: a result made of it holds as long as this is the same.
struct FileStamp {
  std::string path;
  std::uint64_t bytes = 0;
  std::int64_t mtime_ns = 0;

  auto operator<=>(const FileStamp&) const = default;
};

// Zeros where it cannot be looked at.
FileStamp StampOf(const std::string& path);

struct FileListing {
  std::vector<FileStamp> files;
  std::uint64_t left_out = 0;  // of folders, by their ending
  // Of folders: "ranks/b: Permission denied", "rank3.pickle: a link to nothing". In the order of their names.
  std::vector<std::string> skipped;
};

absl::StatusOr<FileListing> ListFiles(const std::vector<std::string>& inputs);

}  // namespace ashlar::fleet

#endif  // ASHLAR_COMMANDS_FLEET_FILES_H_
