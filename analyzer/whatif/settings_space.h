// The settings a search may offer: the values of PYTORCH_CUDA_ALLOC_CONF that can change what happens to a program,
// under the version whose rules are replayed.
//
//   SettingsSpace space = MakeSpace(sizes, {.compat = policy::Compat::kTorch26});
//   for (const SettingPoint& setting : space.All()) std::cout << ConfOf(setting);
//
// max_split_size_mb is searched over even numbers of MiB, and of those only over the ones that differ: with an even
// limit M the policy compares M with rounded requests s (s < M) and with whole segments (s rounded up to 2 MiB >= M),
// and with nothing else, since what is cut from a segment is smaller than M or the segment is never cut. So all even M
// between two neighbouring values of SplitLimits() decide alike. Known-bad combinations (risk.h) are left out.
#ifndef ASHLAR_ANALYZER_WHATIF_SETTINGS_SPACE_H_
#define ASHLAR_ANALYZER_WHATIF_SETTINGS_SPACE_H_

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "allocator/policy/options.h"
#include "analyzer/whatif/risk.h"

namespace ashlar::whatif {

// One point. 0 and false: the key is not given.
struct SettingPoint {
  bool expandable = false;
  std::uint64_t split_mb = 0;
  std::uint64_t non_split_rounding_mb = 0;
  std::uint64_t large_segment_mb = 0;
  std::uint64_t divisions = 0;
  std::uint64_t threshold_percent = 0;  // of garbage_collection_threshold
  auto operator<=>(const SettingPoint&) const = default;
};

// As for PYTORCH_CUDA_ALLOC_CONF; empty for the defaults.
std::string ConfOf(const SettingPoint& setting);

// How many keys a conf names.
std::size_t KeyCount(const std::string& conf);

// The point that decides as `options` do; nullopt where none does (a list of divisions, a rejection, ...).
std::optional<SettingPoint> SettingOf(const policy::Options& options);

// Whether two settings of one version make the same decisions, however they are written.
bool SameDecisions(const policy::Options& a, const policy::Options& b);

// The parts of a recorded conf that the search does not vary and every offered conf keeps: "backend:native,...".
std::string CarriedConf(const std::string& conf);
std::string JoinConfs(const std::string& a, const std::string& b);

// One even limit in MiB for every way in which an even limit above `lowest_mb` can decide about these sizes, ascending;
// limits above all sizes, which decide as no limit does, are left out. `options` gives the rounding.
std::vector<std::uint64_t> SplitLimits(const std::vector<RequestSize>& sizes, const policy::Options& options,
                                       std::uint64_t lowest_mb);

// What the traces of one search allow.
struct SpaceLimits {
  std::vector<policy::Compat> compats = {policy::Compat::kTorch210};  // every setting is known to all of them
  bool has_memory_limit = false;  // a memory fraction: without it garbage_collection_threshold does nothing
};

class SettingsSpace {
 public:
  SettingsSpace(const std::vector<RequestSize>& sizes, const SpaceLimits& limits);

  // Every point, the defaults first.
  std::vector<SettingPoint> All() const;
  // How many All() gives.
  std::uint64_t Size() const { return All().size(); }
  // The points that differ from the defaults in one key (and what that key needs), split limits on a coarse grid.
  std::vector<SettingPoint> CoarseGrid() const;
  // The points one step away: every value of one key, for max_split_size_mb the middle of the limits not yet tried on
  // either side; `tried` ascending.
  std::vector<SettingPoint> Neighbours(const SettingPoint& setting, const std::vector<SettingPoint>& tried) const;

 private:
  const std::vector<std::uint64_t>& Splits(std::uint64_t divisions, std::uint64_t large_segment_mb) const;
  bool Contains(const SettingPoint& setting) const;
  std::vector<std::uint64_t> SplitsNear(const SettingPoint& setting, const std::vector<SettingPoint>& tried) const;

  std::vector<bool> expandable_;
  std::vector<std::uint64_t> divisions_, large_segments_, non_split_roundings_, thresholds_;
  // by divisions and large segment
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<std::uint64_t>> splits_;
};

// Chooses the settings to replay next. It is a pure function of the rows so far, so a search gives the same rows on any
// machine and any number of threads.
//
// A space that the budget covers is replayed whole. Otherwise: first every key alone, split limits on a grid of eight;
// then, round after round, the neighbours of the best settings (the three that rank first, and the first of each kind:
// with expandable segments, with a split limit, with neither), split limits by halving the way to the next one tried;
// until every neighbour is tried or the budget is spent.

// `ranked`: what was replayed, best first; `budget`: how many settings may be replayed in all. Empty: nothing left.
std::vector<SettingPoint> NextRound(const SettingsSpace& space, const std::vector<SettingPoint>& ranked,
                                    std::uint64_t budget);

}  // namespace ashlar::whatif

#endif  // ASHLAR_ANALYZER_WHATIF_SETTINGS_SPACE_H_
