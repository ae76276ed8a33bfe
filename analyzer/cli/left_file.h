// A program that runs may leave anything in its run folder, also under the names that are read there: nobody waits for
// a pipe, or follows a link.
//
//   if (IsLeftFile(folder + "/books")) ...
#ifndef ASHLAR_ANALYZER_CLI_LEFT_FILE_H_
#define ASHLAR_ANALYZER_CLI_LEFT_FILE_H_

#include <filesystem>
#include <system_error>

namespace ashlar::cli {

inline bool IsLeftFile(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(std::filesystem::symlink_status(path, ignored));
}

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_LEFT_FILE_H_
