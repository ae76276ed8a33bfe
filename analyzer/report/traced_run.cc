#include "analyzer/report/traced_run.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/readers/plain/plain_trace.h"
#include "analyzer/readers/snapshot.h"
#include "analyzer/readers/sniff.h"
#include "analyzer/replay/calls_program.h"
#include "analyzer/replay/recorded_options.h"
#include "analyzer/replay/request_replay.h"
#include "analyzer/replay/timeline_sink.h"
#include "analyzer/timeline/observed.h"

namespace ashlar::report {
namespace {

// A retry that succeeds has returned segments just before, which may have been an empty_cache call as well; one that
// fails ends in an out-of-memory event.
CountSpan RetriesOf(const ObservedRun& run) {
  const std::uint64_t ooms = run.timeline.oom_events().size();
  return {run.recorded.options.throw_on_cudamalloc_oom ? 0 : ooms, ooms + run.recorded.program.maybe_releases};
}

// Of the allocator that was recorded, whatever it is replayed as.
timeline::BlockSizeRule SizeRuleOf(const trace::Snapshot& snapshot, const policy::Options& replayed_as) {
  if (trace::RecordsDeviceCalls(snapshot)) return replay::CallsSizeRule();
  const absl::StatusOr<policy::Options> as_recorded = replay::RecordedOptions(snapshot, replayed_as.compat);
  return replay::SizeRuleOf(as_recorded.ok() ? *as_recorded : replayed_as);
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

absl::StatusOr<TracedRun> TraceSnapshot(const trace::Snapshot& snapshot, const ExplainOptions& options) {
  absl::StatusOr<ObservedRun> run = ObserveSnapshot(snapshot, options);
  if (!run.ok()) return run.status();
  const bool has_events = run->timeline.HasAllocations();
  std::optional<CountSpan> retries;
  if (has_events) retries = trace::RecordsDeviceCalls(snapshot) ? CountSpan{} : RetriesOf(*run);
  return TracedRun{DescribeSnapshot(snapshot, *run),
                   run->device,
                   std::move(run->timeline),
                   std::move(run->recorded.options),
                   snapshot.stacks,
                   snapshot.annotations,
                   ServedRequests(run->recorded.program),
                   retries,
                   /*can_fail=*/true,
                   /*has_allocator=*/!trace::RecordsDeviceCalls(snapshot),
                   has_events};
}

absl::StatusOr<TracedRun> TraceRequests(absl::string_view bytes, const ExplainOptions& options) {
  absl::StatusOr<trace::RequestTrace> requests = readers::ParsePlainTrace(bytes);
  if (!requests.ok()) return requests.status();
  absl::StatusOr<ReplayedRun> run = ReplayRequests(*requests, options);
  if (!run.ok()) return run.status();
  const bool can_fail = options.capacity_bytes.has_value();
  std::optional<CountSpan> retries;
  if (can_fail) retries = CountSpan{run->retries, run->retries};
  std::string source = DescribeRequests(*requests);
  return TracedRun{std::move(source),       std::nullopt, std::move(run->timeline),
                   std::move(run->options), {},           {},
                   *std::move(requests),    retries,      can_fail,
                   /*has_allocator=*/true,
                   /*has_events=*/true};
}

}  // namespace

absl::StatusOr<ObservedRun> ObserveSnapshot(const trace::Snapshot& snapshot, const ExplainOptions& options) {
  const absl::StatusOr<int> device = ChooseDevice(snapshot, options.device);
  if (!device.ok()) return device.status();
  Tell(options, "replaying as recorded");
  absl::StatusOr<replay::RecordedReplay> recorded = replay::ReplayAsRecorded(snapshot, *device, options.wishes);
  if (!recorded.ok()) return recorded.status();
  Tell(options, "building the timeline");
  absl::StatusOr<timeline::Timeline> observed =
      timeline::MakeObservedTimeline(snapshot, *device, SizeRuleOf(snapshot, recorded->options));
  if (!observed.ok()) return observed.status();
  return ObservedRun{*device, *std::move(recorded), *std::move(observed)};
}

absl::StatusOr<ReplayedRun> ReplayRequests(const trace::RequestTrace& requests, const ExplainOptions& options) {
  absl::StatusOr<policy::Options> policy_options = remedies::WishedOptions(options.wishes);
  if (!policy_options.ok()) return policy_options.status();
  replay::RequestReplayOptions replay_options{*policy_options, {}, options.memory_fraction};
  replay_options.device.address_order = options.segment_addresses;
  replay_options.device.capacity_bytes = options.capacity_bytes.value_or(remedies::kAmpleCapacityBytes);
  replay::RequestReplay replay(std::move(replay_options));
  Tell(options, absl::StrCat("replaying ", FormatCount(requests.requests.size()), " requests"));
  replay::TimelineSink sink{timeline::StartState{}};
  if (absl::Status status = replay.Run(requests, &sink); !status.ok()) return status;
  absl::StatusOr<timeline::Timeline> replayed = sink.Finish();
  if (!replayed.ok()) return replayed.status();
  return ReplayedRun{*std::move(policy_options), *std::move(replayed), replay.allocator().stats().num_alloc_retries};
}

std::string DescribeSource(const trace::Snapshot& snapshot, int device) {
  if (trace::RecordsDeviceCalls(snapshot)) return absl::StrCat("device calls of a native program, device ", device);
  if (snapshot.recording.has_value()) return absl::StrCat("recording, device ", device);
  return absl::StrCat("PyTorch snapshot, ", snapshot.traits.generation, ", device ", device);
}

std::string DescribeSnapshot(const trace::Snapshot& snapshot, const ObservedRun& run) {
  return absl::StrCat(DescribeSource(snapshot, run.device), ", ",
                      FormatCount(static_cast<std::uint64_t>(run.timeline.event_count())), " events");
}

std::string DescribeRequests(const trace::RequestTrace& requests) {
  return absl::StrCat("request trace, ", FormatCount(requests.requests.size()), " requests, replayed");
}

absl::StatusOr<TracedRun> TraceBytes(absl::string_view bytes, const ExplainOptions& options) {
  const readers::InputKind kind = readers::Sniff(bytes);
  if (readers::IsSnapshot(kind)) {
    const absl::StatusOr<trace::Snapshot> snapshot = readers::ReadSnapshot(bytes);
    return snapshot.ok() ? TraceSnapshot(*snapshot, options) : snapshot.status();
  }
  if (kind == readers::InputKind::kPlainTrace) return TraceRequests(bytes, options);
  return absl::InvalidArgumentError(
      absl::StrCat("this is ", readers::InputKindName(kind), ", not a PyTorch memory snapshot or a request trace"));
}

absl::StatusOr<std::vector<TracedRun>> TraceDevices(absl::string_view bytes, const ExplainOptions& options) {
  std::vector<TracedRun> out;
  if (options.device.has_value() || !readers::IsSnapshot(readers::Sniff(bytes))) {
    absl::StatusOr<TracedRun> run = TraceBytes(bytes, options);
    if (!run.ok()) return run.status();
    out.push_back(*std::move(run));
    return out;
  }
  const absl::StatusOr<trace::Snapshot> snapshot = readers::ReadSnapshot(bytes);
  if (!snapshot.ok()) return snapshot.status();
  ExplainOptions of_device = options;
  for (const int device : replay::UsedDevices(*snapshot)) {
    of_device.device = device;
    absl::StatusOr<TracedRun> run = TraceSnapshot(*snapshot, of_device);
    if (!run.ok()) return run.status();
    out.push_back(*std::move(run));
  }
  return out;
}

}  // namespace ashlar::report
