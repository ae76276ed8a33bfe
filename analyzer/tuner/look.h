// One look of the tuner: the last whole steps of a recording, replayed under other settings. Pure.
//
//   absl::StatusOr<Look> look = LookAt(bytes, {});
//   look->reason   "switch to roundup_power2_divisions:4: 6 steps reserve 1.20 GiB instead of 1.61 GiB (-25.5 %) ..."
//
// Two questions are asked of the same steps:
//   live    from the state in which they began, under settings that the allocator can take as it runs
//           of the peak, what was reserved before the least was counts in neither
//   start   from an empty allocator, under any setting: what a program that begins with it would need
//
// The proof comes first: as recorded the steps must replay to every address, and the same requests on a device that
// answers by its size alone must come to the same figures. Where they do not, nothing is tried.
#ifndef ASHLAR_ANALYZER_TUNER_LOOK_H_
#define ASHLAR_ANALYZER_TUNER_LOOK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace ashlar::tuner {

// Of some steps under one setting.
struct Figures {
  std::uint64_t peak_reserved_bytes = 0;
  std::uint64_t failures = 0;  // requests that ended out of memory
  std::uint64_t retries = 0;   // requests for which the whole cache was returned to the device

  bool operator==(const Figures&) const = default;
};

// Fewer failures, fewer retries for no more memory, or `least_gain` (a share) less memory; and nothing of it worse.
bool Gains(const Figures& by, const Figures& now, double least_gain);
// Of the memory: 0.05 = 5 % less.
double GainOf(const Figures& by, const Figures& now);
// "1.20 GiB reserved instead of 1.61 GiB (-25.5 %), 0 instead of 3 retries"
std::string InsteadOf(const Figures& by, const Figures& now);

struct Tried {
  std::string conf;  // whole: as the allocator would be told it
  Figures figures;
};

enum class LookFinding : std::uint8_t {
  kNoSteps,   // too few whole steps since the settings last changed
  kNotExact,  // the replay is not what was recorded, so that it proves nothing
  kNothing,   // nothing gains enough
  kLive,      // `live` gains enough
  kStart,     // only `start` does
};

struct Look {
  LookFinding finding = LookFinding::kNoSteps;
  std::uint64_t steps = 0;          // whole ones that were replayed
  std::string conf;                 // in force in them
  Figures now;                      // as recorded, from the moment on when the least was reserved
  std::uint64_t least_bytes = 0;    // that was reserved then
  std::optional<Tried> live;        // the best of those that can be switched to
  Figures start_now;                // the settings in force, from an empty allocator
  std::optional<Tried> start;       // the best of all, from an empty allocator
  std::optional<Figures> compared;  // LookOptions::compared_conf, live
  std::string reason;               // one line
};

struct LookOptions {
  double least_gain = 0.05;
  // Where steps end: how many events had been recorded. Empty: they are found (analyses/steps).
  std::vector<std::uint64_t> step_ends = {};
  std::uint64_t least_steps = 2;
  std::uint64_t most_replays = 60;                // of each question
  std::size_t threads = 1;                        // 0: one a core
  bool may_borrow = false;                        // whether borrow_across_streams may be tried
  std::vector<std::string> passed_over = {};      // confs that are not tried any more
  std::optional<std::string> compared_conf = {};  // replayed besides, from the same state
};

// Errors are those of the bytes.
absl::StatusOr<Look> LookAt(absl::string_view recording, const LookOptions& options);

}  // namespace ashlar::tuner

#endif  // ASHLAR_ANALYZER_TUNER_LOOK_H_
