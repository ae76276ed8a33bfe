// Which ranks of a world differ, by what ranks that were run told of their process groups.
//
//   RoleSearch search(64);
//   search.Add(evidence_of_rank_0);
//   for (const RoleToRun& role : search.Next()) ...   // run these, add what they told, and ask again: empty is the end
//   search.StandsFor(8);                              // {8, ..., 15}
//
// The rules:
//   - Whom a rank sends to or receives from, one by one, is another stage of a pipeline: a role of its own. They run
//     one after the other, the least rank first, as a stage hears from the one before.
//   - Along a group that only makes collectives all ranks do the same, but for uneven shards: the last rank of each
//     group of rank 0 is run beside it. The whole world's last rank is run where there are no stages: with stages,
//     what it would receive was said by nobody.
//   - A rank is of the stage at its place in its own pipeline: the group that lies as rank 0's does. Where no such
//   group
//     was made, of the last stage that begins at it or before it.
#ifndef ASHLAR_LAUNCHER_RANK_ROLES_H_
#define ASHLAR_LAUNCHER_RANK_ROLES_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ashlar::cli {

using RankGroup = std::vector<int>;

// A file ranks-PID.json of a run folder (hollow/python/ashlar_hollow/ranks/told.py).
struct RankEvidence {
  int rank = 0, world = 1;
  std::vector<RankGroup> groups, used, paired;
  std::vector<int> peers;
};

// Of several processes the least rank; nullopt: the program made no process group.
std::optional<RankEvidence> ReadRankEvidence(const std::string& folder);

struct RoleToRun {
  int rank = 0;
  std::string what;  // "stage", "last of the 8 ranks 0-7"
};

class RoleSearch {
 public:
  explicit RoleSearch(int ranks) : ranks_(ranks) {}

  // Of a rank that was run, rank 0 first.
  void Add(const RankEvidence& evidence);
  std::vector<RoleToRun> Next();

  // Stages of the pipeline of rank 0, in the order of its group; one where there is no pipeline.
  std::vector<int> Stages() const;
  int StageOf(int rank) const;   // the rank of Stages() that is at the same place
  bool has_told_stages() const;  // by groups, and not by the order of ranks alone
  // All ranks of that stage but those that are run for themselves.
  std::vector<int> StandsFor(int stage, const std::set<int>& themselves) const;

 private:
  const RankGroup* Pipeline() const;  // of rank 0, where a group holds all stages
  void AddLast(const RankGroup& group, std::vector<RoleToRun>& out);

  int ranks_;
  std::set<int> asked_ = {0};
  std::set<int> stages_ = {0};
  std::vector<RankGroup> groups_;
  std::vector<RankEvidence> told_;
};

// "0-7, 16" of sorted ranks; "0, 8, ..., 56" of four or more with the same step.
std::string RangesText(const std::vector<int>& ranks);

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_RANK_ROLES_H_
