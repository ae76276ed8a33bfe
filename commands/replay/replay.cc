#include "commands/replay/replay.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "analyzer/replay/op_sink.h"
#include "analyzer/replay/recorded_options.h"
#include "analyzer/replay/request_replay.h"
#include "commands/explain/explain.h"
#include "commands/shared/fields.h"
#include "commands/shared/json_values.h"
#include "commands/shared/traced_run.h"

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
      ReplayCold(*whatif::SharedWhatIfRequests(program, settings.capacity_bytes.has_value()), recorded.options,
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
  const absl::StatusOr<timeline::DeviceTrace> trace = ChooseDevice(snapshot, settings.device);
  if (!trace.ok()) return trace.status();
  Tell(settings, "replaying as recorded");
  const absl::StatusOr<replay::RecordedReplay> recorded = replay::ReplayAsRecorded(*trace, settings.overrides);
  if (!recorded.ok()) return recorded.status();
  const std::string source = DescribeSource(*trace);
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
  const absl::StatusOr<policy::Options> options = whatif::OverriddenOptions(settings.overrides);
  if (!options.ok()) return options.status();
  absl::StatusOr<ReplayAnswer> out =
      ReplayCold(requests, *options, settings, mode,
                 absl::StrCat(requests.source.empty() ? "request trace" : requests.source, ", ",
                              FormatCount(requests.requests.size()), " requests"));
  if (out.ok()) out->notes.insert(out->notes.end(), requests.notes.begin(), requests.notes.end());
  return out;
}

}  // namespace ashlar::answers

namespace ashlar::report {
namespace {

std::string PeakLine(const char* name, const core::PoolStat& stat) {
  return absl::StrFormat("  %-15s %11s   (%d bytes)\n", name, FormatBytes(static_cast<std::uint64_t>(stat.all().peak)),
                         stat.all().peak);
}

std::string FidelityText(const replay::Fidelity& f) {
  std::string out =
      absl::StrFormat("fidelity\n  addresses       %s of %s\n  segments        %s of %s\n", FormatCount(f.matched),
                      FormatCount(f.total), FormatCount(f.segments_matched), FormatCount(f.segments_total));
  absl::StrAppend(&out, "  final state     ",
                  f.final_state_matches ? "equal" : absl::StrCat("differs: ", f.final_state_difference), "\n");
  absl::StrAppend(&out, "  taken from the record: ", FormatCount(f.segment_addresses_used), " segment addresses, ",
                  FormatCount(f.tails_inferred), " unsplit rests\n");
  if (f.first_mismatch.has_value()) {
    out += absl::StrFormat("  first miss      event %d: recorded at %#x, replayed at %#x\n", f.first_mismatch->event,
                           f.first_mismatch->recorded_address, f.first_mismatch->replayed_address);
  }
  return out;
}

}  // namespace

std::string ToText(const answers::ReplayAnswer& r) {
  std::string out = absl::StrCat(r.source, "\n", "as ", r.compat, ", ", r.free_order, " order, conf '", r.conf, "', ");
  absl::StrAppend(&out,
                  r.capacity_bytes.has_value() ? absl::StrCat("capacity ", FormatBytes(*r.capacity_bytes))
                                               : std::string("capacity not limited"),
                  "\npeaks\n");
  out += PeakLine("reserved", r.stats.reserved_bytes) + PeakLine("allocated", r.stats.allocated_bytes) +
         PeakLine("active", r.stats.active_bytes) + PeakLine("requested", r.stats.requested_bytes);
  if (r.recorded_peak_reserved_bytes.has_value()) {
    absl::StrAppend(&out, "  in the record   ", FormatBytes(*r.recorded_peak_reserved_bytes), " reserved\n");
  }
  absl::StrAppend(&out, "out of memory   ", FormatCount(r.stats.num_ooms), " (", FormatCount(r.stats.num_alloc_retries),
                  " retries, ", FormatCount(r.stats.num_oom_rejections), " rejections)\n");
  absl::StrAppend(&out, "device calls    ", FormatCount(r.calls.segment_alloc), " cudaMalloc, ",
                  FormatCount(r.calls.segment_free), " cudaFree, ", FormatCount(r.calls.map_pages), " cuMemMap, ",
                  FormatCount(r.calls.unmap_pages), " cuMemUnmap");
  if (r.cost_ns.has_value()) out += absl::StrFormat(", about %.1f ms", static_cast<double>(*r.cost_ns) / 1e6);
  out += "\n";
  if (r.fidelity.has_value()) out += FidelityText(*r.fidelity);
  for (const trace::Note& note : r.notes) {
    absl::StrAppend(&out, "note: ", note.message,
                    note.count > 1 ? absl::StrCat(" (", FormatCount(note.count), ")") : "", "\n");
  }
  for (char& c : out) {  // what a file names may hold anything
    if (c != '\n' && absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = '?';
  }
  return out;
}

std::string ToJson(const answers::ReplayAnswer& r) {
  Json out = {{"source", r.source},
              {"compat", r.compat},
              {"free_order", r.free_order},
              {"conf", r.conf},
              {"capacity", OrNull(r.capacity_bytes)},
              {"requests", r.requests},
              {"peak_reserved", r.stats.reserved_bytes.all().peak},
              {"peak_allocated", r.stats.allocated_bytes.all().peak},
              {"peak_active", r.stats.active_bytes.all().peak},
              {"peak_requested", r.stats.requested_bytes.all().peak},
              {"peak_inactive_split", r.stats.inactive_split_bytes.all().peak},
              {"end_reserved", r.stats.reserved_bytes.all().current},
              {"retries", r.stats.num_alloc_retries},
              {"stream_waits", r.stats.num_stream_waits},
              {"ooms", r.stats.num_ooms},
              {"oom_rejections", r.stats.num_oom_rejections},
              {"trace_ooms", r.stats.num_ooms + r.stats.num_oom_rejections},
              {"segments_allocated", r.stats.segment.all().allocated},
              {"segments_freed", r.stats.segment.all().freed()},
              {"cudaMalloc", r.calls.segment_alloc},
              {"cudaFree", r.calls.segment_free},
              {"cuMemMap", r.calls.map_pages},
              {"cuMemUnmap", r.calls.unmap_pages},
              {"estimated_driver_ns", OrNull(r.cost_ns)}};
  out["fidelity"] = nullptr;
  if (r.fidelity.has_value()) {
    out["fidelity"] = {{"matched", r.fidelity->matched},
                       {"total", r.fidelity->total},
                       {"segments_matched", r.fidelity->segments_matched},
                       {"segments_total", r.fidelity->segments_total},
                       {"final_state_matches", r.fidelity->final_state_matches},
                       {"segment_addresses_used", r.fidelity->segment_addresses_used},
                       {"tails_inferred", r.fidelity->tails_inferred}};
  }
  out["recorded_peak_reserved"] = OrNull(r.recorded_peak_reserved_bytes);
  out["notes"] = JsonOf(r.notes);
  return out.ToText();
}

}  // namespace ashlar::report
