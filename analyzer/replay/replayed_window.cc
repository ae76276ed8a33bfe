#include "analyzer/replay/replayed_window.h"

#include <string>
#include <utility>

#include "allocator/core/inspect.h"
#include "analyzer/replay/restored_state.h"
#include "analyzer/timeline/observed.h"
#include "analyzer/timeline/rewind.h"

namespace ashlar::replay {
namespace {

timeline::State StateOf(const core::CachingAllocator& allocator, int device) {
  timeline::State out{.device = device, .segments = {}};
  const core::Inspection inspection(allocator);
  inspection.WhileStill([&] {
    for (const trace::SnapshotSegment& segment : inspection.SegmentsNow()) {
      out.segments.push_back(timeline::StateSegmentOf(segment));
    }
  });
  return out;
}

}  // namespace

absl::StatusOr<std::vector<core::Block*>> RestoreWindow(const SnapshotProgram& program,
                                                        const Reservations& reservations,
                                                        core::CachingAllocator& allocator, RecordedDevice& device,
                                                        const trace::RecordedStart* recorded) {
  absl::StatusOr<std::vector<core::Block*>> start =
      RestoreState(program.start, reservations, allocator, device.simulated(), recorded);
  if (!start.ok()) return start.status();
  for (const auto& [address, segment] : core::Inspection(allocator).heap().segments()) device.AddBase(address);
  return start;
}

absl::StatusOr<WarmReplay> FinishWindow(const trace::Snapshot& snapshot, const SnapshotProgram& program,
                                        RecordedDevice& device, Fidelity fidelity, core::CachingAllocator& allocator,
                                        DecisionSink& sink) {
  allocator.SetSink(nullptr);
  absl::StatusOr<timeline::Timeline> made = sink.Finish();
  if (!made.ok()) return made.status();
  const absl::Status final_state = timeline::CheckAgainstFinalState(StateOf(allocator, program.device), snapshot);
  fidelity.final_state_matches = final_state.ok();
  fidelity.final_state_difference = std::string(final_state.message());
  fidelity.tails_inferred = program.start.inferred_tails;
  fidelity.segment_addresses_used = device.addresses_used();
  return WarmReplay{std::move(fidelity), *std::move(made), allocator.stats(), device.simulated().calls()};
}

}  // namespace ashlar::replay
