// Who holds the live blocks of a device, by name: what the program wrote into its snapshot (trace::Holders), joined
// with the trace by address, which says since which step a variable grows, and by how much.
//
//   std::optional<HeldByName> held = NamesAt(moment, snapshot, timeline, steps);  // nullopt: the snapshot has no names
//   held->rows[0].holder.name                                                     // "losses[]"
#ifndef ASHLAR_ANALYZER_ANALYSES_HOLDERS_HELD_BY_NAME_H_
#define ASHLAR_ANALYZER_ANALYSES_HOLDERS_HELD_BY_NAME_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "allocator/trace/holders.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/analyses/steps/steps.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::analyses {

// What one holder gained in the steps of the window: a variable that grows has blocks of many.
struct HolderGrowth {
  std::size_t since_step = 0;  // counted from 1 in the window
  std::size_t steps = 0;       // whose blocks it still holds
  std::uint64_t bytes_per_step = 0;
};

struct HeldRow {
  trace::Holder holder;
  std::uint64_t bytes = 0;  // requested
  std::uint64_t blocks = 0;
  std::optional<HolderGrowth> growth = {};  // nullopt: it does not grow, or the trace does not say
  std::vector<std::size_t> indices = {};    // of its blocks in Timeline::blocks(), in their order
};

// The rows' bytes sum to live_bytes.
struct HeldByName {
  std::string when;  // "the out-of-memory error"
  std::uint64_t live_bytes = 0;
  std::uint64_t named_bytes = 0;
  std::vector<HeldRow> rows;   // most bytes first; what nobody holds among them, of kind "not_found"
  std::string bound;           // what ended the walk early; empty: nothing
  std::uint64_t not_live = 0;  // blocks with a name that were not live then
  timeline::EventIndex moment = timeline::kBeforeWindow;      // when the names were taken
  absl::flat_hash_map<std::size_t, std::size_t> row_of = {};  // of a block in Timeline::blocks(): place in `rows`

  // Whether the names decide what a cause is at a moment: they were taken then, and lack little.
  bool Decides(timeline::EventIndex at) const;
  // The owner of a block; nullptr: it was not live then.
  const trace::Holder* OwnerOf(std::size_t block) const {
    const auto found = row_of.find(block);
    return found == row_of.end() ? nullptr : &rows[found->second].holder;
  }
};

// Of the timeline's device, at the moment of the names: the last failure, the trace's end, or of names of a peak the
// moment at which just these blocks were live, the one nearest to the timeline's peak. nullopt: there is no such
// moment.
std::optional<HeldByName> NameHolders(const trace::Holders& names, const trace::Snapshot& snapshot,
                                      const timeline::Timeline& timeline, const Steps& steps);

// Of the names that the snapshot has, those that name most of what was live after `at`; nullopt: it has none.
std::optional<HeldByName> NamesAt(timeline::EventIndex at, const trace::Snapshot& snapshot,
                                  const timeline::Timeline& timeline, const Steps& steps);

// The same names for what was live at another moment and was not freed until they were taken; what has gone since has
// no name. So a run that ended well is judged by its owners too, where most of its peak is still there.
HeldByName HeldAt(const HeldByName& held, const timeline::Timeline& timeline, timeline::EventIndex at);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_HOLDERS_HELD_BY_NAME_H_
