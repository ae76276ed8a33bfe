// The flag --confs: settings to try, as a list or a file.
//
//   absl::StatusOr<std::vector<std::string>> confs = ReadConfs("default;expandable_segments:True");   // {"",
//   "expand..."}
#ifndef ASHLAR_ANALYZER_CLI_CONFS_FLAG_H_
#define ASHLAR_ANALYZER_CLI_CONFS_FLAG_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace ashlar::cli {

// A file with a conf a line (an empty line or # begins nothing), or the confs themselves with semicolons between.
// Errors do not name the flag.
absl::StatusOr<std::vector<std::string>> ReadConfs(const std::string& given);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_CONFS_FLAG_H_
