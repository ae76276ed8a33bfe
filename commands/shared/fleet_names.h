// Which rank a file is of, told from the names: all files of a fleet are looked at together.
//
//   RankNames names = NameRanks({"run/rank0_memory_snapshot.pickle", "run/rank37_memory_snapshot.pickle"});
//   names.ranks;    // {0, 37}
//   names.assumed;  // "ranks are told from \"rank\" in the file names: rank37_memory_snapshot.pickle is rank 37"
//
// In this order: a number behind the word rank in the name, then in the name of a folder; the one number in which the
// names differ, then that of the folders (snapshot_37.pickle, node3/snapshot.pickle); else the order of the names. What
// was assumed is said, and with it which ranks have several files and which are missing. Pure functions.
#ifndef ASHLAR_COMMANDS_SHARED_FLEET_NAMES_H_
#define ASHLAR_COMMANDS_SHARED_FLEET_NAMES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace ashlar::answers {

struct RankNames {
  std::vector<std::uint64_t> ranks;  // of each path
  std::string assumed;               // one sentence
};

RankNames NameRanks(const std::vector<std::string>& paths);

// The number behind the word in one name, with at most one sign between: rank37, job-RANK_37.
std::optional<std::uint64_t> RankInName(const std::string& name);

// Numbers in the names by their value: rank2 before rank10.
bool NameComesBefore(absl::string_view a, absl::string_view b);

// "0-127, 450": ascending numbers, each once; those behind the first `most` spans are counted.
std::string RankList(std::vector<std::uint64_t> ranks, std::size_t most = 6);

}  // namespace ashlar::answers

#endif  // ASHLAR_COMMANDS_SHARED_FLEET_NAMES_H_
