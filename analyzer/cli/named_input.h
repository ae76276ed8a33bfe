// How a command opens what its user names. A pipe is waited for; where it is quiet for two seconds, a line on stderr
// says so, once.
//
//   absl::StatusOr<readers::InputBytes> bytes = readers::OpenInput(path, RulesOf(path));
//   absl::StatusOr<std::string> text = ReadSmallInput("costs.txt");
#ifndef ASHLAR_ANALYZER_CLI_NAMED_INPUT_H_
#define ASHLAR_ANALYZER_CLI_NAMED_INPUT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "analyzer/readers/input_file.h"

namespace ashlar::cli {

readers::OpenRules RulesOf(const std::string& path);

// A file of settings, costs or a model.
inline constexpr std::uint64_t kMostSmallInputBytes = 64 * kMiB;
absl::StatusOr<std::string> ReadSmallInput(const std::string& path, std::uint64_t max_bytes = kMostSmallInputBytes);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_NAMED_INPUT_H_
