// The bytes of an input: a file or stdin ("-"), unpacked when its content is gzip, whatever its name.
//
//   absl::StatusOr<std::string> bytes = ReadInput("snapshot.pickle.gz");
#ifndef ASHLAR_ANALYZER_READERS_INPUT_FILE_H_
#define ASHLAR_ANALYZER_READERS_INPUT_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "allocator/base/units.h"

namespace ashlar::readers {

inline constexpr std::uint64_t kDefaultMaxInputBytes = 4 * kGiB;

// Errors name the path. NotFound: no such file; ResourceExhausted: larger than `max_bytes` (read or unpacked);
// DataLoss: damaged or truncated gzip.
absl::StatusOr<std::string> ReadInput(const std::string& path, std::uint64_t max_bytes = kDefaultMaxInputBytes);

}  // namespace ashlar::readers

#endif  // ASHLAR_ANALYZER_READERS_INPUT_FILE_H_
