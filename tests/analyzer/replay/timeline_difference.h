// Whether a timeline of a part of a trace shows what the timeline of the whole trace shows there.
#ifndef ASHLAR_TESTS_ANALYZER_REPLAY_TIMELINE_DIFFERENCE_H_
#define ASHLAR_TESTS_ANALYZER_REPLAY_TIMELINE_DIFFERENCE_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::replay {

using Blocks = std::map<std::uint64_t, std::string>;

inline Blocks BlocksOf(const timeline::State& state) {
  Blocks out;
  for (const timeline::StateSegment& segment : state.segments) {
    for (const timeline::StateBlock& block : segment.blocks) {
      out[block.address] = absl::StrCat(block.size_bytes, " in ", segment.address, " of ", segment.size_bytes,
                                        segment.is_small_pool ? " small" : " large", " pool ", segment.pool.second,
                                        block.state == trace::BlockState::kLive ? " live" : " pending");
    }
  }
  return out;
}

// Empty where `part` shows in [0, its end) what `whole` shows from `from` on: sums everywhere, states at `states`
// moments.
inline std::string Difference(const timeline::Timeline& whole, const timeline::Timeline& part,
                              timeline::EventIndex from, timeline::EventIndex states = 3) {
  for (timeline::EventIndex at = timeline::kBeforeWindow; at < part.event_count(); ++at) {
    if (!(part.TotalsAfter(at) == whole.TotalsAfter(from + at))) return absl::StrCat("sums after event ", at);
  }
  for (timeline::EventIndex i = 0; i < states; ++i) {
    const timeline::EventIndex at = part.event_count() * i / (states - 1) - 1;
    if (BlocksOf(part.StateAt(at)) != BlocksOf(whole.StateAt(from + at))) return absl::StrCat("state after ", at);
  }
  return "";
}

}  // namespace ashlar::replay

#endif  // ASHLAR_TESTS_ANALYZER_REPLAY_TIMELINE_DIFFERENCE_H_
