// Chooses the settings to replay next. It is a pure function of the rows so far, so a search gives the same rows on any
// machine and any number of threads.
//
// A space that the budget covers is replayed whole. Otherwise: first every key alone, split limits on a grid of eight;
// then, round after round, the neighbours of the best settings (the three that rank first, and the first of each kind:
// with expandable segments, with a split limit, with neither), split limits by halving the way to the next one tried;
// until every neighbour is tried or the budget is spent.
#ifndef ASHLAR_ANALYZER_REMEDIES_SEARCH_H_
#define ASHLAR_ANALYZER_REMEDIES_SEARCH_H_

#include <cstdint>
#include <vector>

#include "analyzer/remedies/settings_space.h"

namespace ashlar::remedies {

// `ranked`: what was replayed, best first; `budget`: how many settings may be replayed in all. Empty: nothing left.
std::vector<Setting> NextRound(const SettingsSpace& space, const std::vector<Setting>& ranked, std::uint64_t budget);

}  // namespace ashlar::remedies

#endif  // ASHLAR_ANALYZER_REMEDIES_SEARCH_H_
