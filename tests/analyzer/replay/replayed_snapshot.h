// Does with a snapshot what every test of replays does: one device, one set of options, all the way through.
#ifndef ASHLAR_TESTS_ANALYZER_REPLAY_REPLAYED_SNAPSHOT_H_
#define ASHLAR_TESTS_ANALYZER_REPLAY_REPLAYED_SNAPSHOT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/fingerprint.h"
#include "analyzer/replay/recorded_options.h"
#include "analyzer/replay/snapshot_program.h"
#include "analyzer/replay/warm_replay.h"

namespace ashlar::replay {

struct ReplayedSnapshot {
  SnapshotProgram program;
  WarmReplay warm;
};

// Empty where two replays of one window, with their timeline and without, counted the same.
inline std::string Difference(const WarmReplay& a, const WarmReplay& b) {
  const auto text = [](const WarmReplay& replay) {
    const Fidelity& f = replay.fidelity;
    const core::Stats& s = replay.stats;
    return absl::StrCat(f.matched, "/", f.total, " ", f.segments_matched, "/", f.segments_total, " first ",
                        f.first_mismatch.has_value() ? f.first_mismatch->event : -1, " end ", f.final_state_matches,
                        f.final_state_difference, " used ", f.segment_addresses_used, " tails ", f.tails_inferred,
                        " peaks ", s.reserved_bytes.all().peak, " ", s.allocated_bytes.all().peak, " ",
                        s.active_bytes.all().peak, " now ", s.reserved_bytes.all().current, " ",
                        s.allocated_bytes.all().current, " retries ", s.num_alloc_retries, " ooms ", s.num_ooms,
                        " calls ", replay.calls.MemoryCalls());
  };
  return text(a) == text(b) ? "" : absl::StrCat(text(a), "\n", text(b));
}

// With its timeline. InternalError where the replay without one counts otherwise.
inline absl::StatusOr<ReplayedSnapshot> ReplaySnapshot(const trace::Snapshot& snapshot, const policy::Options& options,
                                                       const WarmReplayHints& hints = {}, int device = 0) {
  const timeline::DeviceTrace trace(snapshot, device);
  absl::StatusOr<SnapshotProgram> program = MakeProgram(trace, SizeRuleOf(options));
  if (!program.ok()) return program.status();
  WarmReplayHints kept = hints;
  kept.keeps_timeline = true;
  absl::StatusOr<WarmReplay> warm = RunWarmReplay(trace, *program, options, kept);
  if (!warm.ok()) return warm.status();
  const absl::StatusOr<WarmReplay> quick = RunWarmReplay(trace, *program, options, hints);
  if (!quick.ok()) return quick.status();
  if (const std::string difference = Difference(*warm, *quick); !difference.empty()) {
    return absl::InternalError(difference);
  }
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

#endif  // ASHLAR_TESTS_ANALYZER_REPLAY_REPLAYED_SNAPSHOT_H_
