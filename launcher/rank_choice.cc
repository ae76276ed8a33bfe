#include "launcher/rank_choice.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace ashlar::cli {
namespace {

constexpr std::uint64_t kMostRanks = 65'536;
constexpr int kMostPerNode = 64;  // devices of a machine
constexpr int kUsualPerNode = 8;
constexpr char kPort[] = "29500";  // torchrun's

absl::Status BadRanks(const std::string& text) { return absl::InvalidArgumentError(text); }

absl::StatusOr<int> PerNode(const RankFlags& flags, int ranks) {
  if (!flags.per_node.has_value()) {
    int out = std::min(ranks, kUsualPerNode);
    while (ranks % out != 0) --out;
    return out;
  }
  const std::uint64_t given = *flags.per_node;
  if (given < 1 || given > kMostPerNode) {
    return BadRanks(absl::StrCat("--ranks-per-node: ", given, " is not between 1 and ", kMostPerNode));
  }
  if (static_cast<std::uint64_t>(ranks) % given != 0) {
    return BadRanks(
        absl::StrCat("--ranks-per-node: ", ranks, " ranks are no multiple of ", given, ", and each node has as many"));
  }
  return static_cast<int>(given);
}

absl::StatusOr<std::vector<int>> GivenRoles(const std::string& text, int ranks) {
  std::vector<int> out;
  if (text == "all") {
    for (int rank = 0; rank < ranks; ++rank) out.push_back(rank);
    return out;
  }
  for (const absl::string_view word : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    int rank = 0;
    if (!absl::SimpleAtoi(word, &rank) || rank < 0 || rank >= ranks) {
      return BadRanks(absl::StrCat("--roles: '", word, "' is neither all nor a rank from 0 to ", ranks - 1));
    }
    if (std::find(out.begin(), out.end(), rank) == out.end()) out.push_back(rank);
  }
  if (out.empty()) return BadRanks(absl::StrCat("--roles: '", text, "' names no rank"));
  return out;
}

}  // namespace

void AddRankFlags(Command& app, Flag devices, RankFlags& flags) {
  app.Add("--ranks", flags.ranks,
          "the program is one rank of so many: each distinct role of them is run in a process of its own, without the "
          "others")
      .Excludes(devices);
  app.Add("--ranks-per-node", flags.per_node, "with --ranks: so many on a machine, and as many devices (default 8)");
  app.Add("--roles", flags.roles,
          "with --ranks: the ranks to run, such as 0,7,63, or all (default: told by the groups)")
      .Takes("RANKS")
      .NotEmpty();
}

absl::StatusOr<RankChoice> ReadRankChoice(const RankFlags& flags) {
  if (!flags.ranks.has_value()) {
    if (!flags.per_node.has_value() && flags.roles.empty()) return RankChoice();
    return BadRanks(absl::StrCat(flags.roles.empty() ? "--ranks-per-node" : "--roles", ": goes with --ranks"));
  }
  if (*flags.ranks < 1 || *flags.ranks > kMostRanks) {
    return BadRanks(absl::StrCat("--ranks: ", *flags.ranks, " is not between 1 and ", kMostRanks));
  }
  RankChoice out{.ranks = static_cast<int>(*flags.ranks), .given = {}};
  const absl::StatusOr<int> per_node = PerNode(flags, out.ranks);
  if (!per_node.ok()) return per_node.status();
  out.per_node = *per_node;
  if (flags.roles.empty()) return out;
  absl::StatusOr<std::vector<int>> given = GivenRoles(flags.roles, out.ranks);
  if (!given.ok()) return given.status();
  out.given = *std::move(given);
  return out;
}

std::map<std::string, std::string> RankEnvironment(const RankChoice& choice, int rank, const std::string& folder) {
  const std::string world = absl::StrCat(choice.ranks), text = absl::StrCat(rank);
  return {{"ASHLAR_RANKS", folder},
          {"RANK", text},
          {"WORLD_SIZE", world},
          {"LOCAL_RANK", absl::StrCat(rank % choice.per_node)},
          {"LOCAL_WORLD_SIZE", absl::StrCat(choice.per_node)},
          {"GROUP_RANK", absl::StrCat(rank / choice.per_node)},
          {"GROUP_WORLD_SIZE", absl::StrCat(choice.ranks / choice.per_node)},
          {"ROLE_RANK", text},
          {"ROLE_WORLD_SIZE", world},
          {"ROLE_NAME", "default"},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", kPort},
          {"TORCHELASTIC_RESTART_COUNT", "0"},
          {"TORCHELASTIC_MAX_RESTARTS", "0"},
          {"TORCHELASTIC_RUN_ID", "none"},
          // Threads of NCCL's process group that only look for peers which hang.
          {"TORCH_NCCL_ENABLE_MONITORING", "0"},
          {"TORCH_NCCL_DUMP_ON_TIMEOUT", "0"}};
}

}  // namespace ashlar::cli
