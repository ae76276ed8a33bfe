// The answer of `ashlar watch`: where a recorded run is now, from the file that it is being recorded into
// (docs/guide/watch.md).
//
//   absl::StatusOr<std::unique_ptr<WatchedFile>> file = WatchedFile::Open("run.ashlar");
//   absl::StatusOr<WatchAnswer> now = (*file)->Look();     // and again, as the file grows
//
// A look reads what came since the last one, so its cost depends on that and on the state, not on the file. Rates and
// the curve are over the times in the recording, not over looks. The program that is recorded is not touched. Sizes are
// bytes. Not thread-safe.
#ifndef ASHLAR_COMMANDS_WATCH_WATCH_H_
#define ASHLAR_COMMANDS_WATCH_WATCH_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/core/accounting.h"
#include "allocator/trace/event.h"
#include "allocator/trace/snapshot.h"

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

// Adds events up for `ashlar watch`: sums, and what came in each second of the last minute.
//
//   WatchTally tally(start_segments);
//   for (const trace::Event& event : events) tally.Add(event);
//   tally.PutInto(answer);
//
// Times are the recording's. An event whose time lies before the last one's counts with that. Not thread-safe.
class WatchTally {
 public:
  WatchTally() = default;
  explicit WatchTally(const std::vector<trace::SnapshotSegment>& start);
  void Add(const trace::Event& event);
  void PutInto(WatchAnswer& answer) const;

 private:
  WatchSecond& SecondOf(const trace::Event& event);
  WatchRates Rates() const;

  std::uint64_t allocated_bytes_ = 0;
  std::uint64_t peak_bytes_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t ooms_ = 0;
  std::optional<std::int64_t> begin_us_, last_us_;
  std::deque<WatchSecond> seconds_;  // those with events, of the last minute
  WatchSecond timeless_;
};

}  // namespace ashlar::answers

namespace ashlar::report {

// Prints the answer of `ashlar watch`: a block of lines for a terminal, one line for a log, or JSON
// (docs/schemas/watch.schema.json).
//
//   std::cout << ToText(*file->Look(), 80);

inline constexpr std::size_t kLeastWatchWidth = 28;  // columns; a narrower terminal cuts the lines

// Every line fits in `width` columns.
std::string ToText(const answers::WatchAnswer& answer, std::size_t width);
// Ends the line. Times are since the recording's first event.
std::string ToLine(const answers::WatchAnswer& answer);
std::string ToJson(const answers::WatchAnswer& answer);
std::string WatchSchema();  // docs/schemas/watch.schema.json

}  // namespace ashlar::report

#endif  // ASHLAR_COMMANDS_WATCH_WATCH_H_
