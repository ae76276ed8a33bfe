#include "analyzer/replay/recorded_replay.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/policy/strategy.h"
#include "analyzer/replay/recorded_options.h"
#include "analyzer/replay/snapshot_program.h"
#include "analyzer/timeline/observed.h"

namespace ashlar::replay {
namespace {

// Orders worth trying, the likeliest first. Before the counters came there was only the address.
std::vector<policy::FreeOrder> OrdersToTry(const trace::Snapshot& snapshot, const policy::Options& options,
                                           const ReplayOverrides& overrides) {
  using policy::FreeOrder;
  const policy::Compat compat = options.compat;
  if (overrides.free_order.has_value()) return {*overrides.free_order};
  if (policy::StrategyOf(options.policy).traits().has_own_order) return {options.free_order};
  if (IsRecordedCompat(snapshot, compat)) return {options.free_order};
  if (overrides.compat.has_value()) return {policy::RulesOf(compat).free_order};
  if (!policy::IsLate(compat) || policy::RulesOf(compat).is_xpu) return {FreeOrder::kAddress};
  std::vector<FreeOrder> out = {policy::RulesOf(compat).free_order};
  for (const FreeOrder other : {FreeOrder::kPerSegmentCounter, FreeOrder::kPerBlockCounter, FreeOrder::kAddress}) {
    if (other != out.front()) out.push_back(other);
  }
  return out;
}

// Where another order than the guessed version's fits better, it is a build between two releases.
policy::Compat CompatOfOrder(policy::FreeOrder order) {
  const absl::Span<const policy::TorchRules> rules = policy::AllTorchRules();
  return std::find_if(rules.rbegin(), rules.rend() - 1, [&](const auto& row) { return row.free_order == order; })
      ->compat;
}

absl::StatusOr<policy::Options> OptionsFor(const trace::Snapshot& snapshot, policy::Compat compat,
                                           const ReplayOverrides& overrides) {
  absl::StatusOr<policy::Options> recorded = RecordedOptions(snapshot, compat);
  if (!overrides.conf.has_value()) return recorded;
  absl::StatusOr<policy::Options> out = policy::ParseConf(*overrides.conf, compat, policy::Keys::kAshlar);
  if (out.ok() && recorded.ok() && IsRecordedCompat(snapshot, compat)) policy::KeepFreeOrder(*recorded, *out);
  return out;
}

std::string GuessSentence(const trace::Snapshot& snapshot, const policy::Options& options,
                          const ReplayOverrides& overrides, bool has_allocations) {
  std::string out = absl::StrCat("replayed as ", policy::CompatName(options.compat),
                                 overrides.compat.has_value() ? " (as asked)"
                                 : IsRecordedCompat(snapshot, options.compat)
                                     ? " (as recorded)"
                                     : absl::StrCat(" (the file's fields: ", snapshot.traits.generation, ")"));
  absl::StrAppend(&out, ", equal free blocks by ", policy::FreeOrderName(options.free_order));
  if (!has_allocations) absl::StrAppend(&out, "; no recorded allocation to check it with");
  return out;
}

std::map<int, std::uint64_t> ReservedByDevice(const trace::Snapshot& snapshot) {
  std::map<int, std::uint64_t> out;
  for (const trace::SnapshotSegment& segment : snapshot.segments) out[segment.device] += segment.size_bytes;
  return out;
}

// Of a program that frees what it allocates, the end says nothing.
std::uint64_t PeakOfCalls(const trace::EventList& events) {
  std::uint64_t held = 0, peak = 0;
  for (const trace::Event& event : events) {
    if (event.action == trace::Action::kAlloc) held += event.size_bytes;
    if (event.action == trace::Action::kFreeRequested) held -= event.size_bytes;
    peak = std::max(peak, held);
  }
  return peak;
}

// By how much of each a device is told to be the busiest.
std::map<int, std::uint64_t> HeldByDevice(const trace::Snapshot& snapshot) {
  std::map<int, std::uint64_t> out = ReservedByDevice(snapshot);
  if (!trace::RecordsDeviceCalls(snapshot)) return out;
  for (std::size_t device = 0; device < snapshot.device_traces.size(); ++device) {
    if (snapshot.device_traces[device].empty()) continue;  // a state alone
    out[static_cast<int>(device)] = PeakOfCalls(snapshot.device_traces[device]);
  }
  return out;
}

// What the program held, and nothing that an allocator decided.
absl::StatusOr<RecordedReplay> CallsAsRecorded(const timeline::DeviceTrace& trace, const ReplayOverrides& overrides) {
  const policy::Compat compat = overrides.compat.value_or(policy::Compat::kTorch210);
  absl::StatusOr<policy::Options> options =
      policy::ParseConf(overrides.conf.value_or(""), compat, policy::Keys::kAshlar);
  if (!options.ok()) return options.status();
  absl::StatusOr<timeline::Timeline> observed = timeline::MakeObservedTimeline(trace, CallsSizeRule());
  if (!observed.ok()) return observed.status();
  return RecordedReplay{*std::move(options), MakeCallsProgram(trace), WarmReplay{},
                        "device calls: no allocator to replay", *std::move(observed)};
}

// The time of the last request that failed; nullopt where none did.
std::optional<std::int64_t> LastFailure(const trace::EventList& events) {
  for (auto event = events.rbegin(); event != events.rend(); ++event) {
    if (event->action == trace::Action::kOom) return event->time_us;
  }
  return std::nullopt;
}

}  // namespace

std::uint64_t FailedRequests(const timeline::DeviceTrace& trace) {
  return static_cast<std::uint64_t>(
      std::count_if(trace.events.begin(), trace.events.end(),
                    [](const trace::Event& event) { return event.action == trace::Action::kOom; }));
}

std::vector<int> UsedDevices(const trace::Snapshot& snapshot) {
  std::set<int> used;
  for (const auto& [device, bytes] : ReservedByDevice(snapshot)) used.insert(device);
  for (std::size_t device = 0; device < snapshot.device_traces.size(); ++device) {
    if (!snapshot.device_traces[device].empty()) used.insert(static_cast<int>(device));
  }
  if (used.empty()) used.insert(0);
  return {used.begin(), used.end()};
}

int DeviceToExplain(const trace::Snapshot& snapshot) {
  std::optional<std::int64_t> latest;
  int failing = 0;
  for (std::size_t device = 0; device < snapshot.device_traces.size(); ++device) {
    const std::optional<std::int64_t> failure = LastFailure(snapshot.device_traces[device]);
    if (!failure.has_value() || (latest.has_value() && *failure <= *latest)) continue;
    latest = failure;
    failing = static_cast<int>(device);
  }
  if (latest.has_value()) return failing;
  int busiest = UsedDevices(snapshot).front();
  std::uint64_t most = 0;
  for (const auto& [device, bytes] : HeldByDevice(snapshot)) {
    if (bytes <= most) continue;
    most = bytes;
    busiest = device;
  }
  return busiest;
}

absl::StatusOr<RecordedReplay> ReplayAsRecorded(const timeline::DeviceTrace& trace, const ReplayOverrides& overrides) {
  const trace::Snapshot& snapshot = *trace.snapshot;
  if (trace::RecordsDeviceCalls(snapshot)) return CallsAsRecorded(trace, overrides);
  const policy::Compat compat = overrides.compat.value_or(GuessCompat(snapshot));
  absl::StatusOr<policy::Options> options = OptionsFor(snapshot, compat, overrides);
  if (!options.ok()) return options.status();
  // The recorded settings decide how the recorded blocks are read, whatever is replayed.
  const absl::StatusOr<policy::Options> recorded = RecordedOptions(snapshot, compat);
  absl::StatusOr<ObservedProgram> made = ObserveProgram(trace, SizeRuleOf(recorded.ok() ? *recorded : *options));
  if (!made.ok()) return made.status();
  WarmReplayHints hints;
  hints.keeps_timeline = overrides.keeps_timeline;
  if (snapshot.recording.has_value()) hints.device_total_bytes = snapshot.recording->device_total_bytes;
  std::optional<WarmReplay> best;
  policy::FreeOrder best_order = options->free_order;
  for (const policy::FreeOrder order : OrdersToTry(snapshot, *options, overrides)) {
    options->free_order = order;
    absl::StatusOr<WarmReplay> warm = RunWarmReplay(trace, made->program, *options, hints);
    if (!warm.ok()) return warm.status();
    const bool is_exact = warm->fidelity.matched == warm->fidelity.total;
    if (!best.has_value() || warm->fidelity.matched > best->fidelity.matched) {
      best.emplace(*std::move(warm));
      best_order = order;
    }
    if (is_exact) break;
  }
  options->free_order = best_order;
  for (const std::size_t call : best->user_calls) {
    made->program.answers[call].release = Release::kUserCall;
    --made->program.maybe_releases;
    ++made->program.user_releases;
  }
  const bool is_asked = overrides.compat.has_value() || overrides.free_order.has_value() ||
                        policy::StrategyOf(options->policy).traits().has_own_order;
  if (!is_asked && !snapshot.recording.has_value() && best_order != policy::RulesOf(compat).free_order) {
    options->compat = CompatOfOrder(best_order);
  }
  std::string guess = GuessSentence(snapshot, *options, overrides, best->fidelity.total > 0);
  return RecordedReplay{*std::move(options), std::move(made->program), *std::move(best), std::move(guess),
                        std::move(made->observed)};
}

}  // namespace ashlar::replay
