// Replays a recording that names every call, refusal and reservation (trace::RecordingInfo::has_calls): nothing is
// guessed. Events and facts are taken one after the other; each call and each request is made again, and the device
// answers what it answered.
//
//   fact  empty_cache            -> EmptyCache(); the completed frees and releases behind it are its own
//   event free_requested 0x7f..  -> free; completed where the free_completed stands
//   fact  refused 20 MiB         -> the request under way: the device, or the limit, refuses here,
//   event segment_free 0x7e..       this the ladder does,
//   event segment_alloc 0x7c..      here the device gives,
//   event alloc 0x7c..              and this is what was asked for
//
// A replay that no longer follows (other settings) is given memory at addresses of the device's own choice.
#ifndef ASHLAR_ANALYZER_REPLAY_LOG_REPLAY_H_
#define ASHLAR_ANALYZER_REPLAY_LOG_REPLAY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "allocator/core/inspect.h"
#include "allocator/policy/options.h"
#include "allocator/trace/event.h"
#include "allocator/trace/fact.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/replay/recorded_window.h"
#include "analyzer/replay/snapshot_program.h"
#include "analyzer/replay/warm_replay.h"
#include "analyzer/timeline/window.h"

namespace ashlar::replay {

// Which event completes which free of a recording. Frees that wait in one run of the ladder complete in the order of
// the streams they wait for: numbered by the event that completes them, they complete as recorded.

// Only looked up. Frees that are completed at once need no number, and are not in it.
struct FreeCompletions {
  absl::flat_hash_map<std::size_t, std::size_t> by_free;  // event of a free -> event that completes it
  absl::flat_hash_map<std::uint64_t, std::size_t> first;  // address -> the event, of a free before the recording
};

FreeCompletions FindCompletions(const std::vector<trace::Event>& events, const std::vector<trace::Fact>& facts);

// What the facts of one recorded request say of how it was asked and served (trace/fact.h).
struct RequestFacts {
  std::optional<trace::fact::AskedFor> asked = {};
  bool is_missed = false;          // it was not searched for
  core::Direction direction = {};  // the planned segment that a plan asked for, and where it placed the block
  bool is_placed = false;          // by a plan

  void Take(const trace::AnyFact& fact) {
    if (const auto* asked_for = std::get_if<trace::fact::AskedFor>(&fact)) asked = *asked_for;
    if (const auto* segment = std::get_if<trace::fact::PlannedSegmentAsked>(&fact))
      direction.segment_bytes = segment->bytes;
    is_missed |= trace::IsAny<trace::fact::SearchMissed>(fact);
    is_placed |= trace::IsAny<trace::fact::PlacedByPlan>(fact);
  }
};

bool NamesCalls(const trace::Snapshot& snapshot, int device);

// Of a recording that NamesCalls.
absl::StatusOr<WarmReplay> RunLogReplay(const trace::Snapshot& snapshot, const SnapshotProgram& program,
                                        const policy::Options& options, const WarmReplayHints& hints);

// Replays up to the window's end. FailedPrecondition where the replay does not follow the record so far.
absl::StatusOr<RecordedMoments> ReplayToMoments(const trace::Snapshot& snapshot, const SnapshotProgram& program,
                                                const policy::Options& options, const WarmReplayHints& hints,
                                                const timeline::EventWindow& window);

}  // namespace ashlar::replay

#endif  // ASHLAR_ANALYZER_REPLAY_LOG_REPLAY_H_
