// The answer of `ashlar watch`: where a recorded run is now, from the file that it is being recorded into
// (docs/guide/watch.md).
//
//   absl::StatusOr<std::unique_ptr<WatchedFile>> file = WatchedFile::Open("run.ashlar");
//   absl::StatusOr<WatchAnswer> now = (*file)->Look();     // and again, as the file grows
//
// A look reads what came since the last one, so its cost depends on that and on the state, not on the file. Rates and
// the curve are over the times in the recording, not over looks. The program that is recorded is not touched. Sizes are
// bytes. Not thread-safe.
#ifndef ASHLAR_ANALYZER_ANSWERS_WATCH_H_
#define ASHLAR_ANALYZER_ANSWERS_WATCH_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/core/accounting.h"

namespace ashlar::answers {

// What came within one second of the recording.
struct WatchSecond {
  std::int64_t second = 0;                 // since 1970
  std::uint64_t most_allocated_bytes = 0;  // within it
  std::uint64_t last_allocated_bytes = 0;  // as it ended
  std::uint64_t allocations = 0;
  std::uint64_t frees = 0;
  std::uint64_t device_calls = 0;  // segments obtained and returned, pages mapped and unmapped
};

// A second's worth, of each.
struct WatchRates {
  double allocations = 0;
  double frees = 0;
  double device_calls = 0;
};

struct WatchAnswer {
  std::string source;                        // the file
  core::Accounting accounting;               // of all devices
  std::uint64_t largest_free_bytes = 0;      // block of the cache
  std::optional<std::uint64_t> total_bytes;  // of the device, where the recording says
  std::uint64_t peak_allocated_bytes = 0;    // since the recording began
  std::uint64_t events = 0;
  std::uint64_t ooms = 0;
  std::optional<std::int64_t> begin_us, last_us;  // of the first and the last event; nullopt: without time
  std::optional<WatchRates> rates;                // over the last kRateSeconds; nullopt: events without time
  std::vector<WatchSecond> minute;                // the last one, every second of it, oldest first
  bool has_ended = false;                         // nothing more will come
  // Why nothing more will come, though there is no end: "nobody writes it any more"; empty where something may.
  std::string stopped;
};

inline constexpr std::int64_t kRateSeconds = 5;
inline constexpr std::int64_t kMinuteSeconds = 60;

class WatchedFile {
 public:
  virtual ~WatchedFile() = default;
  // A recording of ours or a native program's log. NotFound and the like where it cannot be read, InvalidArgument where
  // it is nothing that grows, with what can be done.
  static absl::StatusOr<std::unique_ptr<WatchedFile>> Open(const std::string& path);
  // DataLoss: what the file holds cannot be, or less of it is there than was read.
  virtual absl::StatusOr<WatchAnswer> Look() = 0;
};

// The file that process `pid` is recording into; of several the one that was opened last. NotFound: there is none,
// and how to record; PermissionDenied: another user's process.
absl::StatusOr<std::string> RecordedFileOf(std::int64_t pid);

}  // namespace ashlar::answers

#endif  // ASHLAR_ANALYZER_ANSWERS_WATCH_H_
