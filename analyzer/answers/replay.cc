#include "analyzer/answers/replay.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/answers/explain_calls.h"
#include "analyzer/answers/traced_run.h"
#include "analyzer/replay/ample_memory.h"
#include "analyzer/replay/event_log.h"
#include "analyzer/replay/recorded_order.h"
#include "analyzer/replay/request_replay.h"

namespace ashlar::answers {
namespace {

ReplayAnswer AnswerUnder(const policy::Options& options, std::string source) {
  ReplayAnswer out;
  out.source = std::move(source);
  out.compat = std::string(policy::CompatName(options.compat));
  out.free_order = std::string(policy::FreeOrderName(options.free_order));
  out.conf = options.conf;
  out.notes = NotesOfSettings(options);
  return out;
}

replay::RequestReplayOptions ColdOptions(const policy::Options& options, const ReplaySettings& settings,
                                         const ReplayMode& mode) {
  replay::RequestReplayOptions out{options, {}, settings.memory_fraction};
  out.device.capacity_bytes = AllocatorBytes(settings).value_or(replay::kAmpleBytes);
  out.device.outside_bytes = OutsideBytes(settings);
  out.device.address_order = settings.segment_addresses.value_or(device::AddressOrder::kAscending);
  out.device.cost = settings.device_costs;
  out.device.events_complete_immediately = mode.events_complete_immediately;
  return out;
}

// From an empty allocator.
absl::StatusOr<ReplayAnswer> ReplayCold(const trace::RequestTrace& requests, const policy::Options& options,
                                        const ReplaySettings& settings, const ReplayMode& mode, std::string source) {
  Tell(settings, absl::StrCat("replaying ", FormatCount(requests.requests.size()), " requests"));
  replay::RequestReplay replay(ColdOptions(options, settings, mode));
  replay::EventLog log;
  if (absl::Status status = replay.Run(requests, mode.logs_events ? &log : nullptr); !status.ok()) return status;
  ReplayAnswer out = AnswerUnder(options, std::move(source));
  if (mode.logs_events) out.event_log = log.Finish();
  out.capacity_bytes = AllocatorBytes(settings);
  out.requests = requests.requests.size();
  out.stats = replay.allocator().stats();
  out.calls = replay.device().calls();
  out.cost_ns = replay.device().cost_ns();
  return out;
}

ReplayAnswer WarmAnswer(const replay::RecordedReplay& recorded, const std::string& source) {
  ReplayAnswer out =
      AnswerUnder(recorded.options, absl::StrCat(source, ", warm: from the state in which the window begins"));
  out.requests = recorded.program.requests.requests.size() - recorded.program.start_count;
  out.stats = recorded.warm.stats;
  out.calls = recorded.warm.calls;
  out.fidelity = recorded.warm.fidelity;
  return out;
}

absl::StatusOr<ReplayAnswer> ColdAnswer(const replay::RecordedReplay& recorded, ReplaySettings settings,
                                        const ReplayMode& mode, const std::string& source) {
  if (!settings.segment_addresses.has_value()) {
    settings.segment_addresses = replay::RecordedAddressOrder(recorded.observed.segments());
  }
  const replay::SnapshotProgram& program = recorded.program;
  absl::StatusOr<ReplayAnswer> out =
      ReplayCold(*remedies::SharedWhatIfRequests(program, settings.capacity_bytes.has_value()), recorded.options,
                 settings, mode, absl::StrCat(source, ", cold"));
  if (out.ok() && program.start_count > 0) {
    out->notes.push_back({"starts_cold",
                          "blocks older than the window were allocated first, in address order; what the cache held "
                          "besides is not in this trace, so peaks differ from the record",
                          program.start_count});
  }
  return out;
}

absl::StatusOr<ReplayAnswer> ReplaySnapshot(const trace::Snapshot& snapshot, const ReplaySettings& settings,
                                            const ReplayMode& mode) {
  if (trace::RecordsDeviceCalls(snapshot)) return absl::InvalidArgumentError(kNoSettings);
  const absl::StatusOr<int> device = ChooseDevice(snapshot, settings.device);
  if (!device.ok()) return device.status();
  Tell(settings, "replaying as recorded");
  const absl::StatusOr<replay::RecordedReplay> recorded =
      replay::ReplayAsRecorded(snapshot, *device, settings.overrides);
  if (!recorded.ok()) return recorded.status();
  const std::string source = DescribeSource(snapshot, *device);
  const bool is_cold = mode.is_cold || mode.logs_events;
  absl::StatusOr<ReplayAnswer> out =
      is_cold ? ColdAnswer(*recorded, WithContext(settings, snapshot), mode, source) : WarmAnswer(*recorded, source);
  if (!out.ok()) return out;
  out->recorded_peak_reserved_bytes = recorded->observed.reserved_peak().bytes;
  if (!is_cold && (settings.capacity_bytes.has_value() || settings.memory_fraction.has_value())) {
    out->notes.push_back({"limit_not_used",
                          "--capacity and --memory-fraction limit a cold replay only: a warm one has memory where the "
                          "recorded device had it; add --cold",
                          1});
  }
  if (const auto note = ContextNote(settings, snapshot); note.has_value() && is_cold) out->notes.push_back(*note);
  out->notes.push_back({"replayed_as", recorded->guess, 1});
  out->notes.insert(out->notes.end(), snapshot.notes.begin(), snapshot.notes.end());
  return out;
}

}  // namespace

absl::StatusOr<ReplayAnswer> Replay(const Input& input, const ReplaySettings& settings, const ReplayMode& mode) {
  if (input.snapshot() != nullptr) return ReplaySnapshot(*input.snapshot(), settings, mode);
  if (input.requests() == nullptr) return absl::InvalidArgumentError("this input holds no trace");
  const trace::RequestTrace& requests = *input.requests();
  const absl::StatusOr<policy::Options> options = remedies::OverriddenOptions(settings.overrides);
  if (!options.ok()) return options.status();
  absl::StatusOr<ReplayAnswer> out =
      ReplayCold(requests, *options, settings, mode,
                 absl::StrCat(requests.source.empty() ? "request trace" : requests.source, ", ",
                              FormatCount(requests.requests.size()), " requests"));
  if (out.ok()) out->notes.insert(out->notes.end(), requests.notes.begin(), requests.notes.end());
  return out;
}

}  // namespace ashlar::answers
