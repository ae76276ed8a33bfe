// The log that libashlar_record.so wrote of a native program: what it comes to, and how it is kept.
#ifndef ASHLAR_ANALYZER_CLI_LAUNCH_NATIVE_H_
#define ASHLAR_ANALYZER_CLI_LAUNCH_NATIVE_H_

#include <string>

#include "absl/status/statusor.h"
#include "analyzer/cli/launch_results.h"

namespace ashlar::cli {

absl::StatusOr<NativeCalls> ReadNativeCalls(const std::string& path);

// Writes the log's trace: as a snapshot where `to` ends in .pickle or .pkl, else as a recording.
absl::Status KeepNativeLog(const std::string& path, const std::string& to);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_LAUNCH_NATIVE_H_
