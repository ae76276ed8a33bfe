// Does with a snapshot what every test of replays does: one device, one set of options, all the way through.
#ifndef ASHLAR_TESTS_REPLAY_REPLAYED_SNAPSHOT_H_
#define ASHLAR_TESTS_REPLAY_REPLAYED_SNAPSHOT_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "allocator/base/fingerprint.h"
#include "analyzer/replay/recorded_options.h"
#include "analyzer/replay/snapshot_program.h"
#include "analyzer/replay/warm_replay.h"

namespace ashlar::replay {

struct ReplayedSnapshot {
  SnapshotProgram program;
  WarmReplay warm;
};

inline absl::StatusOr<ReplayedSnapshot> ReplaySnapshot(const trace::Snapshot& snapshot, const policy::Options& options,
                                                       const WarmReplayHints& hints = {}, int device = 0) {
  absl::StatusOr<SnapshotProgram> program = MakeProgram(snapshot, device, SizeRuleOf(options));
  if (!program.ok()) return program.status();
  absl::StatusOr<WarmReplay> warm = RunWarmReplay(snapshot, *program, options, hints);
  if (!warm.ok()) return warm.status();
  return ReplayedSnapshot{*std::move(program), *std::move(warm)};
}

// Of every decision the replay made, in order.
inline std::uint64_t FingerprintOf(const timeline::Timeline& timeline) {
  Fingerprint fingerprint;
  for (const trace::Event& event : timeline.events()) {
    fingerprint.Add(static_cast<std::uint64_t>(event.action));
    fingerprint.Add(event.address);
    fingerprint.Add(event.size_bytes);
    fingerprint.Add(Handle(event.stream));
  }
  return fingerprint.value();
}

}  // namespace ashlar::replay

#endif  // ASHLAR_TESTS_REPLAY_REPLAYED_SNAPSHOT_H_
