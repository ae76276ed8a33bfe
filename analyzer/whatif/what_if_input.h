// Makes the input of a what-if from a reader's snapshot: the requests, the settings they were recorded under, the
// capacity, and how well the recorded run is reproduced. Shared by every command that tries settings.
//
//   WhatIfInput input = InputOf(recorded, observed, {.capacity_bytes = 16 * kGiB});
//   std::vector<WhatIfRow> rows = *RunWhatIfs(input.requests, input.settings);
#ifndef ASHLAR_ANALYZER_WHATIF_WHAT_IF_INPUT_H_
#define ASHLAR_ANALYZER_WHATIF_WHAT_IF_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/trace/snapshot.h"
#include "allocator/trace/stack_table.h"
#include "analyzer/analyses/steps/continuation.h"
#include "analyzer/analyses/steps/steps.h"
#include "analyzer/replay/recorded_replay.h"
#include "analyzer/replay/snapshot_program.h"
#include "analyzer/replay/warm_replay.h"
#include "analyzer/timeline/timeline.h"
#include "analyzer/whatif/what_if.h"

namespace ashlar::whatif {

struct ReplayLimits {
  std::optional<std::uint64_t> capacity_bytes = {};  // of the allocator, used where the record does not tell it
  std::uint64_t outside_bytes = 0;                   // what the device has besides
  std::optional<double> memory_fraction = {};
  std::optional<device::AddressOrder> segment_addresses = {};  // nullopt: as a recorded device did, else ascending
  device::CostModel device_costs = {};
  std::size_t threads = 0;  // WhatIfSettings::threads
};

struct WhatIfInput {
  std::string name = {};    // of the file
  std::string source = {};  // "PyTorch snapshot, device 0, 9,670 events"
  trace::RequestTrace requests = {};
  WhatIfSettings settings = {};
  std::optional<replay::Fidelity> fidelity = {};                   // nullopt: no recorded allocation to compare with
  std::string replayed_as = {};                                    // version and order, and what spoke for them
  std::optional<std::uint64_t> recorded_peak_reserved_bytes = {};  // in the record's own window
  bool has_recorded_oom = false;
  std::optional<analyses::Continuation> next = {};  // where the run ended in a request that failed
  std::vector<trace::Note> notes = {};              // of the input itself
};

// What the allocator could hold when it last ran out of memory: reserved + free on the device at that moment. Where the
// device had room for the new segment a limit stopped it (a memory fraction), which lies at or above the most that was
// ever reserved, and below that moment's reserved and the segment: the former is taken, so that what fits does fit.
// Where the fraction is known the replay keeps to it by itself, in all that the allocator and the device had.
std::optional<std::uint64_t> CapacityAtOom(const timeline::Timeline& timeline, const policy::Options& options,
                                           bool is_fraction_known = false);

// What the program asked for. Where the capacity is known the allocator's own releases are left out: they come by
// themselves.
trace::RequestTrace WhatIfRequests(const replay::SnapshotProgram& program, bool is_capacity_known);
// The same without a copy where nothing is left out: the program must then outlive them.
std::shared_ptr<const trace::RequestTrace> SharedWhatIfRequests(const replay::SnapshotProgram& program,
                                                                bool is_capacity_known);

WhatIfInput InputOf(const replay::RecordedReplay& recorded, const timeline::Timeline& observed,
                    const ReplayLimits& limits);
// The same with `requests` left empty, for who has them.
WhatIfInput InputWithoutRequests(const replay::RecordedReplay& recorded, const timeline::Timeline& observed,
                                 const ReplayLimits& limits);
WhatIfInput InputWithoutRequests(const trace::RequestTrace& requests, const policy::Options& baseline,
                                 const ReplayLimits& limits);
WhatIfInput InputOf(const trace::RequestTrace& requests, const policy::Options& baseline, const ReplayLimits& limits);

// What a request trace is replayed under, which records no settings: what is asked for, else torch-2.10 without a conf.
absl::StatusOr<policy::Options> OverriddenOptions(const replay::ReplayOverrides& overrides);

// How the baseline's row differs from the record, where it does.
std::vector<trace::Note> BaselineNotes(const WhatIfInput& input, const WhatIfRow& baseline);

// How a recorded run would have gone on: whether it ended in a request that failed, and what would have followed.
//
//   input.next = ProjectionOf(recorded.program, observed, snapshot.stacks, steps);
//   RunWhatIfs(input.requests, input.settings, {}, input.next ? &*input.next : nullptr);

// `steps` are those of the timeline. nullopt: no request failed, or the program went on to ask for more after the last
// that did. The requests are those of WhatIfRequests with the capacity known.
std::optional<analyses::Continuation> ProjectionOf(const replay::SnapshotProgram& program,
                                                   const timeline::Timeline& observed, const trace::StackTable& stacks,
                                                   const analyses::Steps& steps);

}  // namespace ashlar::whatif

#endif  // ASHLAR_ANALYZER_WHATIF_WHAT_IF_INPUT_H_
