// What a fleet keeps of one rank's file: a small value that can be written down, sent, and reduced with those of the
// other ranks (fleet.h). What is not known is nullopt, never 0. Sizes are bytes.
//
//   absl::StatusOr<RankSummary> summary = SummarizeRank(*LoadInput(bytes), {.replay = settings});
//
// Pure but for its replays; one thread at a time.
#ifndef ASHLAR_COMMANDS_FLEET_FLEET_RANK_H_
#define ASHLAR_COMMANDS_FLEET_FLEET_RANK_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "analyzer/whatif/what_if.h"
#include "commands/shared/input.h"
#include "commands/shared/replay_settings.h"

namespace ashlar::answers {

inline constexpr std::size_t kFleetBins = 200;

// A cause that was found, as explanation.h has it.
struct RankCause {
  std::string name;
  std::string sentence;
  std::string confidence;
  std::uint64_t bytes = 0;
  bool is_sickness = true;  // false: the program works as it should, and holds the memory
  std::string line = {};    // of the program, that most of it comes from; empty: none is known

  bool operator==(const RankCause&) const = default;
};

// The last request that found no memory.
struct RankFailure {
  std::optional<std::int64_t> time_us;  // by the recorder's clock
  std::optional<std::uint64_t> request_bytes;
  std::string verdict;  // "fragmentation"

  bool operator==(const RankFailure&) const = default;
};

// The greatest values in each of kFleetBins equal parts of the window [begin, end): of time where the file has times,
// else of events, counted from 0.
struct RankCurve {
  bool is_time = false;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::vector<std::uint64_t> allocated_bytes = {};
  std::vector<std::uint64_t> reserved_bytes = {};

  bool operator==(const RankCurve&) const = default;
};

// What stays behind at each step.
struct RankGrowth {
  std::uint64_t bytes_per_step = 0;
  std::uint64_t bytes = 0;  // at the moment looked at
  std::string line = {};    // of the program; empty: not known

  bool operator==(const RankGrowth&) const = default;
};

// The rank's requests replayed under one setting.
struct RankRow {
  std::string conf;          // without what the rank's own settings carry besides
  bool is_recorded = false;  // decides as the recorded settings do
  whatif::WhatIfRow row = {};
};

struct RankSummary {
  std::string source;
  std::string headline;
  std::optional<int> device = {};
  std::uint64_t events = 0;
  std::optional<RankFailure> failure = {};
  std::optional<std::uint64_t> peak_allocated_bytes = {};
  std::optional<std::uint64_t> peak_reserved_bytes = {};
  std::optional<std::uint64_t> stranded_bytes = {};  // at the failure, else at the peak of allocated memory
  std::optional<std::uint64_t> total_bytes = {};     // of the device
  std::vector<RankCause> causes = {};                // the one to fix first comes first
  std::optional<RankGrowth> growth = {};
  std::uint64_t steps = 0;  // 0: none were found
  std::optional<std::uint64_t> addresses_matched = {};
  std::optional<std::uint64_t> addresses_total = {};
  std::optional<bool> is_exact = {};     // whether the replay follows the record in all
  std::string compat = {};               // whose rules the replay kept; empty without one
  std::string conf = {};                 // recorded settings
  std::string carried = {};              // of those, what every tried setting keeps
  std::vector<std::string> unread = {};  // what of them could not be read, a sentence each
  std::vector<RankRow> rows = {};        // empty: nothing to replay; else the recorded settings first
  std::optional<RankCurve> curve = {};
};

struct RankOptions {
  ReplaySettings replay = {};
  std::vector<std::string> confs = {};  // to try; empty: whatif::StandardConfs()
};

// Errors are one line without the file's name. Of a text with several messages the first counts, for it ended the run.
absl::StatusOr<RankSummary> SummarizeRank(const Input& input, const RankOptions& options);

}  // namespace ashlar::answers

#endif  // ASHLAR_COMMANDS_FLEET_FLEET_RANK_H_
