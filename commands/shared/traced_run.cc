#include "commands/shared/traced_run.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/replay/request_replay.h"
#include "analyzer/timeline/observed.h"
#include "commands/shared/request_origins.h"

namespace ashlar::answers {
namespace {

// A retry that succeeds has returned segments just before, which may have been an empty_cache call as well; one that
// fails ends in an out-of-memory event.
CountSpan RetriesOf(const ObservedRun& run) {
  const std::uint64_t ooms = run.timeline.oom_events().size();
  return {run.recorded.options.throw_on_cudamalloc_oom ? 0 : ooms, ooms + run.recorded.program.maybe_releases};
}

// The ids of failed requests are freed by nobody; what else names them is ignored by every replay.
trace::RequestTrace ServedRequests(const replay::SnapshotProgram& program) {
  trace::RequestTrace out = program.requests;
  out.requests.clear();
  for (std::size_t i = 0; i < program.requests.requests.size(); ++i) {
    if (!program.answers[i].is_oom) out.requests.push_back(program.requests.requests[i]);
  }
  return out;
}

int DeviceCount(const trace::Snapshot& snapshot) {
  int count = static_cast<int>(snapshot.device_traces.size());
  for (const trace::SnapshotSegment& segment : snapshot.segments) count = std::max(count, segment.device + 1);
  return count;
}

absl::StatusOr<TracedRun> TraceSnapshot(const trace::Snapshot& snapshot, const ReplaySettings& settings) {
  absl::StatusOr<ObservedRun> run = ObserveSnapshot(snapshot, settings);
  if (!run.ok()) return run.status();
  const bool has_events = run->timeline.HasAllocations();
  std::optional<CountSpan> retries;
  if (has_events) retries = trace::RecordsDeviceCalls(snapshot) ? CountSpan{} : RetriesOf(*run);
  std::optional<analyses::HeldByName> held;
  if (snapshot.holders.has_value()) {
    held = analyses::NameHolders(*snapshot.holders, snapshot, run->timeline, /*steps=*/{});
  }
  return TracedRun{std::move(run->source),
                   run->device,
                   std::move(run->timeline),
                   std::move(run->recorded.options),
                   snapshot.stacks,
                   snapshot.annotations,
                   ServedRequests(run->recorded.program),
                   retries,
                   /*can_fail=*/true,
                   /*has_allocator=*/!trace::RecordsDeviceCalls(snapshot),
                   has_events,
                   std::move(held)};
}

absl::StatusOr<TracedRun> TraceRequests(const trace::RequestTrace& requests, const ReplaySettings& settings) {
  absl::StatusOr<ReplayedRun> run = ReplayRequests(requests, settings);
  if (!run.ok()) return run.status();
  const bool can_fail = settings.capacity_bytes.has_value();
  std::optional<CountSpan> retries;
  if (can_fail) retries = CountSpan{run->retries, run->retries};
  std::string source = DescribeRequests(requests);
  return TracedRun{std::move(source),
                   std::nullopt,
                   std::move(run->timeline),
                   std::move(run->options),
                   {},
                   {},
                   requests,
                   retries,
                   can_fail,
                   /*has_allocator=*/true,
                   /*has_events=*/true};
}

}  // namespace

absl::StatusOr<timeline::DeviceTrace> ChooseDevice(const trace::Snapshot& snapshot, std::optional<int> asked) {
  if (!asked.has_value()) return timeline::DeviceTrace(snapshot, replay::DeviceToExplain(snapshot));
  const int count = DeviceCount(snapshot);
  if (*asked >= 0 && *asked < std::max(count, 1)) return timeline::DeviceTrace(snapshot, *asked);
  return absl::OutOfRangeError(absl::StrCat("--device: the snapshot has no device ", *asked, ": it has ", count,
                                            count == 1 ? " device" : " devices", ", counted from 0"));
}

namespace {

// What moves no memory stays.
timeline::DeviceTrace WithoutHistory(timeline::DeviceTrace trace) {
  std::erase_if(trace.events.Mutable(), [](const trace::Event& event) {
    return event.action != trace::Action::kOom && event.action != trace::Action::kSnapshot;
  });
  return trace;
}

// With how many events, where a count of them says something.
std::string DescribeEvents(const timeline::DeviceTrace& trace, const timeline::Timeline& observed) {
  const std::optional<trace::RecordedSettings>& settings = trace.snapshot->settings;
  const auto events = static_cast<std::uint64_t>(observed.event_count());
  const std::uint64_t before = trace.window.events_before;
  if (events == 0 && settings.has_value() && settings->values.contains(trace::kCallsOriginKey)) {
    return DescribeSource(trace);
  }
  return absl::StrCat(DescribeSource(trace), ", ", FormatCount(events), " events",
                      before == 0 ? "" : absl::StrCat(", the last of ", FormatCount(before + events)));
}

}  // namespace

absl::StatusOr<ObservedRun> ObserveDevice(const timeline::DeviceTrace& trace, const ReplaySettings& settings) {
  std::vector<std::string> missing = timeline::MissingActions(trace);
  if (!missing.empty()) {
    absl::StatusOr<ObservedRun> out = ObserveDevice(WithoutHistory(trace), settings);
    if (out.ok()) out->missing = std::move(missing);
    return out;
  }
  Tell(settings, "replaying as recorded");
  absl::StatusOr<replay::RecordedReplay> recorded = replay::ReplayAsRecorded(trace, settings.overrides);
  if (!recorded.ok()) return recorded.status();
  timeline::Timeline observed = std::exchange(recorded->observed, {});
  return ObservedRun{trace.device, DescribeEvents(trace, observed), *std::move(recorded), std::move(observed)};
}

absl::StatusOr<ObservedRun> ObserveSnapshot(const trace::Snapshot& snapshot, const ReplaySettings& settings) {
  const absl::StatusOr<timeline::DeviceTrace> trace = ChooseDevice(snapshot, settings.device);
  if (!trace.ok()) return trace.status();
  return ObserveDevice(*trace, settings);
}

absl::StatusOr<ReplayedRun> ReplayRequests(const trace::RequestTrace& requests, const ReplaySettings& settings,
                                           std::vector<std::uint32_t>* ops) {
  absl::StatusOr<policy::Options> policy_options = whatif::OverriddenOptions(settings.overrides);
  if (!policy_options.ok()) return policy_options.status();
  replay::RequestReplayOptions replay_options{*policy_options, {}, settings.memory_fraction};
  replay_options.device.address_order = settings.segment_addresses.value_or(device::AddressOrder::kAscending);
  replay_options.device.capacity_bytes = AllocatorBytes(settings).value_or(replay::kAmpleBytes);
  replay::RequestReplay replay(std::move(replay_options));
  Tell(settings, absl::StrCat("replaying ", FormatCount(requests.requests.size()), " requests"));
  PlacedSink sink(ops);
  if (absl::Status status = replay.Run(requests, &sink); !status.ok()) return status;
  absl::StatusOr<timeline::Timeline> replayed = sink.Finish();
  if (!replayed.ok()) return replayed.status();
  return ReplayedRun{*std::move(policy_options), *std::move(replayed), replay.allocator().stats().num_alloc_retries};
}

std::string DescribeSource(const timeline::DeviceTrace& trace) {
  const trace::Snapshot& snapshot = *trace.snapshot;
  if (trace::RecordsDeviceCalls(snapshot)) {
    const auto setting = [&](const std::string& key, const std::string& otherwise) {
      const auto it = snapshot.settings->values.find(key);
      return it == snapshot.settings->values.end() ? otherwise : it->second;
    };
    return absl::StrCat(setting(trace::kCallsOriginKey, "device calls of a native program"), ", ",
                        setting(trace::DeviceNameKey(trace.device), absl::StrCat("device ", trace.device)));
  }
  if (snapshot.recording.has_value()) return absl::StrCat("recording, device ", trace.device);
  return absl::StrCat("PyTorch snapshot, ", snapshot.traits.generation, ", device ", trace.device);
}

std::string DescribeRequests(const trace::RequestTrace& requests) {
  const std::string& source = requests.source;
  return absl::StrCat(source.empty() ? "request trace" : source, ", ", FormatCount(requests.requests.size()),
                      " requests, replayed");
}

std::vector<trace::Note> NotesOfSettings(const policy::Options& options) {
  std::vector<trace::Note> out;
  for (const std::string& note : options.notes) out.push_back({"setting", note, 1});
  return out;
}

absl::StatusOr<TracedRun> TraceInput(const Input& input, const ReplaySettings& settings) {
  if (input.snapshot() != nullptr) return TraceSnapshot(*input.snapshot(), settings);
  if (input.requests() != nullptr) return TraceRequests(*input.requests(), settings);
  return absl::InvalidArgumentError("this input holds no trace");
}

absl::StatusOr<std::vector<TracedRun>> TraceDevices(const Input& input, const ReplaySettings& settings) {
  std::vector<ReplaySettings> each = {settings};
  if (!settings.device.has_value() && input.snapshot() != nullptr) {
    each.clear();
    for (const int device : replay::UsedDevices(*input.snapshot())) each.emplace_back(settings).device = device;
  }
  std::vector<TracedRun> out;
  for (const ReplaySettings& of_device : each) {
    absl::StatusOr<TracedRun> run = TraceInput(input, of_device);
    if (!run.ok()) return run.status();
    out.push_back(*std::move(run));
  }
  return out;
}

}  // namespace ashlar::answers
