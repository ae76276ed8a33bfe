#include "analyzer/whatif/what_if_input.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "allocator/policy/size_rule.h"
#include "analyzer/analyses/steps/steps.h"
#include "analyzer/replay/recorded_options.h"

namespace ashlar::whatif {
namespace {

WhatIfSettings SettingsOf(const policy::Options& baseline, const ReplayLimits& limits) {
  WhatIfSettings out;
  out.baseline = baseline;
  out.capacity_bytes = limits.capacity_bytes;
  out.device.outside_bytes = limits.outside_bytes;
  out.memory_fraction = limits.memory_fraction;
  out.device.address_order = limits.segment_addresses.value_or(device::AddressOrder::kAscending);
  out.device.cost = limits.device_costs;
  out.threads = limits.threads;
  return out;
}

}  // namespace

std::optional<std::uint64_t> CapacityAtOom(const timeline::Timeline& timeline, const policy::Options& options,
                                           bool is_fraction_known) {
  if (timeline.oom_events().empty()) return std::nullopt;
  const timeline::EventIndex moment = timeline.oom_events().back();
  const trace::Event& event = timeline.events()[static_cast<std::size_t>(moment)];
  const std::uint64_t free_bytes = event.address;
  const std::uint64_t reserved = timeline.TotalsAfter(moment).reserved_bytes;
  if (free_bytes > UINT64_MAX / 2 - reserved) return std::nullopt;
  const std::uint64_t segment = policy::SegmentBytes(std::max<std::uint64_t>(event.size_bytes, 1), options);
  if (free_bytes >= segment && !is_fraction_known) return timeline.reserved_peak().bytes;
  return reserved + free_bytes;
}

trace::RequestTrace WhatIfRequests(const replay::SnapshotProgram& program, bool is_capacity_known) {
  if (!is_capacity_known || program.maybe_releases == 0) return program.requests;
  trace::RequestTrace out;
  out.id_count = program.requests.id_count;
  out.pools = program.requests.pools;
  out.put_back = program.requests.put_back;
  out.source = program.requests.source;
  out.requests.reserve(program.requests.requests.size());
  for (std::size_t i = 0; i < program.requests.requests.size(); ++i) {
    if (program.answers[i].release == replay::Release::kMaybeLadder) continue;
    out.requests.push_back(program.requests.requests[i]);
  }
  return out;
}

std::shared_ptr<const trace::RequestTrace> SharedWhatIfRequests(const replay::SnapshotProgram& program,
                                                                bool is_capacity_known) {
  if (is_capacity_known && program.maybe_releases > 0) {
    return std::make_shared<const trace::RequestTrace>(WhatIfRequests(program, is_capacity_known));
  }
  return {std::shared_ptr<void>(), &program.requests};
}

WhatIfInput InputOf(const replay::RecordedReplay& recorded, const timeline::Timeline& observed,
                    const ReplayLimits& limits) {
  WhatIfInput out = InputWithoutRequests(recorded, observed, limits);
  out.requests = WhatIfRequests(recorded.program, out.settings.capacity_bytes.has_value());
  return out;
}

WhatIfInput InputWithoutRequests(const replay::RecordedReplay& recorded, const timeline::Timeline& observed,
                                 const ReplayLimits& limits) {
  WhatIfInput out;
  out.settings = SettingsOf(recorded.options, limits);
  if (!limits.segment_addresses.has_value()) {
    out.settings.device.address_order = replay::RecordedAddressOrder(observed.segments());
  }
  const bool is_fraction_known =
      limits.memory_fraction.has_value() || recorded.options.per_process_memory_fraction.has_value();
  const std::optional<std::uint64_t> at_oom = CapacityAtOom(observed, recorded.options, is_fraction_known);
  if (at_oom.has_value()) {
    out.settings.capacity_bytes = at_oom;
    out.settings.device.outside_bytes = 0;
  }
  out.settings.is_cut_off = at_oom.has_value();
  if (recorded.warm.fidelity.total > 0) out.fidelity = recorded.warm.fidelity;
  out.replayed_as = recorded.guess;
  out.recorded_peak_reserved_bytes = observed.reserved_peak().bytes;
  out.has_recorded_oom = !observed.oom_events().empty();
  return out;
}

WhatIfInput InputOf(const trace::RequestTrace& requests, const policy::Options& baseline, const ReplayLimits& limits) {
  WhatIfInput out = InputWithoutRequests(requests, baseline, limits);
  out.requests = requests;
  return out;
}

WhatIfInput InputWithoutRequests(const trace::RequestTrace& requests, const policy::Options& baseline,
                                 const ReplayLimits& limits) {
  WhatIfInput out;
  out.settings = SettingsOf(baseline, limits);
  out.source = absl::StrCat(requests.source.empty() ? "request trace" : requests.source, ", ",
                            FormatCount(requests.requests.size()), " requests");
  out.replayed_as = absl::StrCat("replayed as ", policy::CompatName(baseline.compat), ", equal free blocks by ",
                                 policy::FreeOrderName(baseline.free_order));
  return out;
}

absl::StatusOr<policy::Options> OverriddenOptions(const replay::ReplayOverrides& overrides) {
  absl::StatusOr<policy::Options> out = policy::ParseConf(
      overrides.conf.value_or(""), overrides.compat.value_or(policy::Compat::kTorch210), policy::Keys::kAshlar);
  if (out.ok() && overrides.free_order.has_value()) out->free_order = *overrides.free_order;
  return out;
}

std::vector<trace::Note> BaselineNotes(const WhatIfInput& input, const WhatIfRow& baseline) {
  std::vector<trace::Note> out;
  const std::optional<std::uint64_t> record = input.recorded_peak_reserved_bytes;
  if (record.has_value() && baseline.peak_reserved_bytes != *record) {
    out.push_back({"cold_replay_differs",
                   absl::StrFormat("replayed from an empty allocator the recorded settings peak at %s reserved, the "
                                   "record at %s: what was cached before the window is not in this trace",
                                   FormatBytes(baseline.peak_reserved_bytes), FormatBytes(*record)),
                   1});
  }
  if (input.has_recorded_oom && baseline.ooms == 0) {
    out.push_back(
        {"oom_not_reproduced",
         "replayed from an empty allocator the recorded settings do not run out of memory: fragmentation from "
         "before the window took part, so a what-if that fits proves little here",
         1});
  }
  return out;
}

namespace {

// What was recorded of the requests of WhatIfRequests, in their order.
struct AskedRequests {
  std::vector<trace::StackId> stacks;
  std::vector<timeline::EventIndex> events;
  std::vector<std::size_t> failures;
};

AskedRequests AskedOf(const replay::SnapshotProgram& program, const timeline::Timeline& observed) {
  AskedRequests out;
  for (std::size_t i = 0; i < program.answers.size(); ++i) {
    const replay::RecordedAnswer& answer = program.answers[i];
    if (answer.release == replay::Release::kMaybeLadder) continue;
    if (answer.is_oom) out.failures.push_back(out.events.size());
    const bool is_seen = answer.event >= 0 && answer.event < observed.event_count();
    out.events.push_back(is_seen ? timeline::EventIndex{answer.event} : timeline::kBeforeWindow);
    out.stacks.push_back(is_seen ? observed.events()[static_cast<std::size_t>(answer.event)].stack : trace::kNoStack);
  }
  return out;
}

// Frees alone follow where an exception ended the program.
bool AsksAfter(const trace::RequestTrace& requests, std::size_t failed) {
  for (std::size_t i = failed + 1; i < requests.requests.size(); ++i) {
    if (requests.requests[i].kind == trace::OpKind::kAlloc) return true;
  }
  return false;
}

std::optional<std::size_t> FirstSince(const std::vector<timeline::EventIndex>& events, timeline::EventIndex event) {
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (events[i] >= event) return i;
  }
  return std::nullopt;
}

}  // namespace

std::optional<analyses::Continuation> ProjectionOf(const replay::SnapshotProgram& program,
                                                   const timeline::Timeline& observed, const trace::StackTable& stacks,
                                                   const analyses::Steps& steps) {
  if (observed.oom_events().empty()) return std::nullopt;
  const std::shared_ptr<const trace::RequestTrace> shared = SharedWhatIfRequests(program, true);
  const trace::RequestTrace& requests = *shared;
  AskedRequests asked = AskedOf(program, observed);
  if (asked.failures.empty() || AsksAfter(requests, asked.failures.back())) return std::nullopt;
  const analyses::ProgramParts parts(&stacks);
  analyses::CutOffRun run{&requests, asked.stacks, asked.failures.back(), {}, {}, &parts};
  asked.failures.pop_back();
  run.earlier_failures = asked.failures;
  if (!steps.steps.empty()) run.step_begin = FirstSince(asked.events, steps.steps.back().end);
  return analyses::Continue(run);
}

}  // namespace ashlar::whatif
