// A rank's summary as one line of JSON, and back: what workers send and journals keep. What was written reads back to
// an equal value; texts that are no UTF-8 have their bad bytes replaced.
//
//   std::string line = WriteRank(summary);
//   absl::StatusOr<answers::RankSummary> again = ReadRank(line);
//
// InvalidArgument where a line is none of ours. Pure functions.
#ifndef ASHLAR_COMMANDS_FLEET_RANK_TEXT_H_
#define ASHLAR_COMMANDS_FLEET_RANK_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "commands/fleet/fleet_rank.h"

namespace ashlar::fleet {

// Of this form; a change of what is kept changes it, and journals of another are not read.
inline constexpr int kRankTextVersion = 2;

// What came of a file: its summary, or why there is none.
using RankResult = absl::StatusOr<answers::RankSummary>;

std::string WriteRank(const RankResult& result);
absl::StatusOr<RankResult> ReadRank(absl::string_view line);

}  // namespace ashlar::fleet

#endif  // ASHLAR_COMMANDS_FLEET_RANK_TEXT_H_
