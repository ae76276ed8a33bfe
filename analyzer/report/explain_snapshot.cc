#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/replay/ample_memory.h"
#include "analyzer/report/explain.h"
#include "analyzer/report/explain_calls.h"
#include "analyzer/report/explain_causes.h"
#include "analyzer/report/explain_timeline.h"
#include "analyzer/report/traced_run.h"

namespace ashlar::report {
namespace {

void AddNote(std::string name, std::string message, std::uint64_t count, Explanation& out) {
  out.notes.push_back({std::move(name), std::move(message), count});
}

int DeviceCount(const trace::Snapshot& snapshot) {
  int count = static_cast<int>(snapshot.device_traces.size());
  for (const trace::SnapshotSegment& segment : snapshot.segments) count = std::max(count, segment.device + 1);
  return count;
}

// "device 0 has 3.20 GiB reserved and 1 failed request".
std::string DeviceInWords(const trace::Snapshot& snapshot, int device) {
  std::uint64_t reserved = 0;
  for (const trace::SnapshotSegment& segment : snapshot.segments) {
    if (segment.device == device) reserved += segment.size_bytes;
  }
  const std::uint64_t failed = replay::FailedRequests(snapshot, device);
  std::string out = absl::StrCat("device ", device, " has ", FormatBytes(reserved), " reserved");
  if (failed > 0)
    absl::StrAppend(&out, " and ", FormatCount(failed), failed == 1 ? " failed request" : " failed requests");
  return out;
}

void NoteOtherDevices(const trace::Snapshot& snapshot, int device, Explanation& out) {
  const std::vector<int> used = replay::UsedDevices(snapshot);
  if (used.size() < 2) return;
  const bool has_failed = replay::FailedRequests(snapshot, device) > 0;
  std::string others;
  for (const int other : used) {
    if (other != device) absl::StrAppend(&others, others.empty() ? "" : ", ", DeviceInWords(snapshot, other));
  }
  AddNote("several_devices",
          absl::StrCat("the snapshot has ", used.size(), " devices; this is device ", device,
                       has_failed ? ", where a request failed last" : ", which holds most", "; ", others,
                       "; choose another with --device"),
          used.size(), out);
}

// What the recorded window leaves open, and what was told from elsewhere.
void NoteProgram(const replay::SnapshotProgram& program, Explanation& out) {
  if (program.start.segments.empty()) return;
  const std::uint64_t blocks = program.start_ids.size();
  AddNote(
      "starts_warm",
      absl::StrCat("the trace starts on an allocator that already holds ", FormatCount(program.start.segments.size()),
                   " segments and ", FormatCount(blocks), " blocks; what came before is not in this trace"),
      blocks, out);
  if (program.start.unknown_tails > 0) {
    AddNote("unknown_tails", "blocks older than the trace whose unsplit rest (at most 1 MiB each) never showed",
            program.start.unknown_tails, out);
  }
}

// A recording of our own says what was called.
void NoteReleases(const replay::SnapshotProgram& program, bool is_recording, Explanation& out) {
  if (is_recording) return;
  if (program.user_releases > 0) {
    AddNote("empty_cache_told_from_frees", "empty_cache calls, told from segments that were freed",
            program.user_releases, out);
  }
  if (program.maybe_releases > 0) {
    AddNote(
        "releases_before_growth",
        "times that segments were freed right before a new one was needed: by the allocator itself (a retry), or by an "
        "empty_cache call just before; this trace does not tell which",
        program.maybe_releases, out);
  }
}

// A recording of our own knows the device; a dry run's may be one that never runs out.
std::optional<std::uint64_t> TotalOf(const trace::Snapshot& snapshot, const ExplainOptions& options) {
  if (options.capacity_bytes.has_value() || !snapshot.recording.has_value()) return options.capacity_bytes;
  const std::uint64_t total = snapshot.recording->device_total_bytes;
  const bool is_known = total != 0 && total != replay::kAmpleBytes;
  return is_known ? std::optional(total) : std::nullopt;
}

absl::Status AddWhatIfs(const replay::RecordedReplay& recorded, const timeline::Timeline& observed,
                        const ExplainOptions& options, Explanation& out) {
  if (recorded.warm.fidelity.total == 0) {
    out.advice.sentence = "what other settings would have done is not in this trace: it has no allocations to replay";
    return absl::OkStatus();
  }
  const remedies::WhatIfInput input = remedies::InputOf(recorded, observed, LimitsOf(options));
  out.what_if_capacity_bytes = input.settings.capacity_bytes;
  absl::StatusOr<std::vector<remedies::WhatIfRow>> rows =
      remedies::RunWhatIfs(input.requests, input.settings, options.progress);
  if (!rows.ok()) return rows.status();
  out.what_if = *std::move(rows);
  out.advice = remedies::Advise(out.what_if);
  const std::vector<trace::Note> notes = remedies::BaselineNotes(input, out.what_if.front());
  out.notes.insert(out.notes.end(), notes.begin(), notes.end());
  return absl::OkStatus();
}

}  // namespace

remedies::ReplayLimits LimitsOf(const ExplainOptions& options) {
  return {options.capacity_bytes, options.memory_fraction, options.segment_addresses, options.device_costs};
}

void Tell(const ExplainOptions& options, const std::string& stage) {
  if (options.progress) options.progress(stage);
}

absl::StatusOr<int> ChooseDevice(const trace::Snapshot& snapshot, std::optional<int> wished) {
  if (!wished.has_value()) return replay::DeviceToExplain(snapshot);
  const int count = DeviceCount(snapshot);
  if (*wished >= 0 && *wished < std::max(count, 1)) return *wished;
  return absl::OutOfRangeError(absl::StrCat("--device: the snapshot has no device ", *wished, ": it has ", count,
                                            count == 1 ? " device" : " devices", ", counted from 0"));
}

absl::StatusOr<Explanation> ExplainSnapshot(const trace::Snapshot& snapshot, const ExplainOptions& options) {
  if (trace::RecordsDeviceCalls(snapshot)) return ExplainCalls(snapshot, options);
  Explanation out;
  const absl::StatusOr<ObservedRun> run = ObserveSnapshot(snapshot, options);
  if (!run.ok()) return run.status();
  const replay::RecordedReplay& recorded = run->recorded;
  const timeline::Timeline& observed = run->timeline;
  if (!options.device.has_value()) NoteOtherDevices(snapshot, run->device, out);
  out.source = DescribeSnapshot(snapshot, *run);
  Tell(options, "accounting for every byte");
  TimelineContext context{&recorded.options, &snapshot.stacks, TotalOf(snapshot, options), std::nullopt,
                          snapshot.annotations};
  ExplainTimeline(observed, context, out);
  out.replayed_as = recorded.guess;
  if (recorded.warm.fidelity.total > 0) out.fidelity = recorded.warm.fidelity;
  NoteProgram(recorded.program, out);
  NoteReleases(recorded.program, snapshot.recording.has_value(), out);
  if (absl::Status status = AddWhatIfs(recorded, observed, options, out); !status.ok()) return status;
  if (absl::Status status = AddCauses(snapshot, *run, options, out); !status.ok()) return status;
  out.notes.insert(out.notes.end(), snapshot.notes.begin(), snapshot.notes.end());
  return out;
}

}  // namespace ashlar::report
