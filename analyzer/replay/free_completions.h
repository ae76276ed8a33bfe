// Which event completes which free of a recording. Frees that wait in one run of the ladder complete in the order of
// the streams they wait for: numbered by the event that completes them, they complete as recorded.
#ifndef ASHLAR_ANALYZER_REPLAY_FREE_COMPLETIONS_H_
#define ASHLAR_ANALYZER_REPLAY_FREE_COMPLETIONS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "allocator/trace/event.h"
#include "allocator/trace/fact.h"

namespace ashlar::replay {

// Only looked up. Frees that are completed at once need no number, and are not in it.
struct FreeCompletions {
  absl::flat_hash_map<std::size_t, std::size_t> by_free;  // event of a free -> event that completes it
  absl::flat_hash_map<std::uint64_t, std::size_t> first;  // address -> the event, of a free before the recording
};

FreeCompletions FindCompletions(const std::vector<trace::Event>& events, const std::vector<trace::Fact>& facts);

}  // namespace ashlar::replay

#endif  // ASHLAR_ANALYZER_REPLAY_FREE_COMPLETIONS_H_
