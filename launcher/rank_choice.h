// Which world of ranks a dry run is asked for, and what each rank finds in its environment.
//
//   absl::StatusOr<RankChoice> choice = ReadRankChoice({.ranks = 64});   // nodes of 8
//   launch.environment.merge(RankEnvironment(*choice, 63, folder));      // RANK=63, LOCAL_RANK=7, WORLD_SIZE=64, ...
#ifndef ASHLAR_LAUNCHER_RANK_CHOICE_H_
#define ASHLAR_LAUNCHER_RANK_CHOICE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "console/command_line.h"

namespace ashlar::cli {

struct RankFlags {
  std::optional<std::uint64_t> ranks;
  std::optional<std::uint64_t> per_node;
  std::string roles;  // "0,7,63", "all"; empty: by evidence
};

// Some exclude the flag `devices`: a node has as many devices as ranks.
void AddRankFlags(Command& app, Flag devices, RankFlags& flags);

struct RankChoice {
  int ranks = 0;  // 0: the program is run as it is
  int per_node = 1;
  std::vector<int> given;  // those to run, in this order; empty: by evidence

  bool is_asked() const { return ranks > 0; }
  int first() const { return given.empty() ? 0 : given.front(); }
};

// Errors name the flag.
absl::StatusOr<RankChoice> ReadRankChoice(const RankFlags& flags);

// As torchrun sets it, and the folder that the ranks share which are run one after the other.
std::map<std::string, std::string> RankEnvironment(const RankChoice& choice, int rank, const std::string& folder);

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_RANK_CHOICE_H_
