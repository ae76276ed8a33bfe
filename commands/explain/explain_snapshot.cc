#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "allocator/base/units.h"
#include "analyzer/replay/recorded_options.h"
#include "analyzer/replay/request_replay.h"
#include "analyzer/whatif/what_if_input.h"
#include "commands/explain/explain.h"
#include "commands/explain/explain_parts.h"
#include "commands/explain/picture/picture_maker.h"
#include "commands/explain/verdict.h"
#include "commands/shared/traced_run.h"

namespace ashlar::answers {
namespace {

constexpr std::size_t kMostLabels = 5;

void AddNote(std::string name, std::string message, std::uint64_t count, Explanation& out) {
  out.notes.push_back({std::move(name), std::move(message), count});
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

void NoteMissing(const ObservedRun& run, Explanation& out) {
  if (run.missing.empty()) return;
  AddNote("history_lacks_events",
          absl::StrCat("this history lacks ", absl::StrJoin(run.missing, " and "),
                       " events (skip_actions): it cannot be replayed, and its final state alone is shown"),
          run.missing.size(), out);
}

// How the state at an error can be kept, before Python's frames are left.
constexpr const char* kObserverLines[] = {
    "def dump(device, allocated, device_total, device_free):",
    "    torch.cuda.memory._dump_snapshot(f'oom-{device}.pickle')",
    "torch._C._cuda_attach_out_of_memory_observer(dump)",
};

// Frees after the last error: the file was written when the program had let go of much of what it held.
void NoteUnwinding(const timeline::Timeline& observed, Explanation& out) {
  if (observed.oom_events().empty()) return;
  const timeline::EventIndex failed = observed.oom_events().back();
  const std::uint64_t then = observed.TotalsAfter(failed).allocated_bytes;
  const std::uint64_t at_end = observed.TotalsAfter(observed.last_event()).allocated_bytes;
  if (at_end >= then - then / 10) return;
  AddNote("dumped_after_unwinding",
          absl::StrCat("the file was written after the error had been handled: the program had given back ",
                       FormatBytes(then - at_end),
                       " by then; the state at the error is worked out from the events. A ring that is too short loses "
                       "them: an observer writes the file in time"),
          static_cast<std::uint64_t>(observed.last_event() - failed), out);
  if (out.next_lines.empty()) out.next_lines.assign(std::begin(kObserverLines), std::end(kObserverLines));
  if (out.next_step.empty()) out.next_step = "to have the state at the error itself, before the failure is handled:";
}

// Most of what is reserved was taken before the window, and the window does not say by what: a ring that is too short.
void NoteEarlierPeak(const timeline::Timeline& observed, Explanation& out) {
  const std::uint64_t reserved = observed.reserved_peak().bytes;
  const bool is_earlier = observed.oom_events().empty() && observed.HasAllocations() &&
                          observed.reserved_peak().event == timeline::kBeforeWindow;
  if (!is_earlier || observed.allocated_peak().bytes >= reserved / 2) return;
  AddNote(
      "peak_before_window",
      absl::StrCat("the trace begins with ", FormatBytes(reserved), " reserved, of which at most ",
                   FormatBytes(observed.allocated_peak().bytes),
                   " were in use within it: what took the rest, and whether a request failed then, is not in this "
                   "trace; a larger max_entries, or a file written by torch._C._cuda_attach_out_of_memory_observer, "
                   "has it"),
      1, out);
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
std::optional<std::uint64_t> TotalOf(const trace::Snapshot& snapshot, const ReplaySettings& settings) {
  if (settings.capacity_bytes.has_value() || !snapshot.recording.has_value()) return settings.capacity_bytes;
  const std::uint64_t total = snapshot.recording->device_total_bytes;
  const bool is_known = total != 0 && total != replay::kAmpleBytes;
  return is_known ? std::optional(total) : std::nullopt;
}

absl::Status AddWhatIfs(const trace::Snapshot& snapshot, const ObservedRun& run, const analyses::Steps& steps,
                        const ReplaySettings& settings, PictureMaker* picture, Explanation& out) {
  const replay::RecordedReplay& recorded = run.recorded;
  const timeline::Timeline& observed = run.timeline;
  if (recorded.warm.fidelity.total == 0) {
    out.advice.sentence = "what other settings would have done is not in this trace: it has no allocations to replay";
    return absl::OkStatus();
  }
  const ReplaySettings given = WithContext(settings, snapshot);
  whatif::WhatIfInput input = whatif::InputWithoutRequests(recorded, observed, LimitsOf(given));
  input.next = whatif::ProjectionOf(recorded.program, observed, snapshot.stacks, steps);
  out.what_if_capacity_bytes = input.settings.capacity_bytes;
  const analyses::Continuation* next = input.next ? &*input.next : nullptr;
  if (picture != nullptr) {
    const bool is_capacity_known = input.settings.capacity_bytes.has_value();
    picture->SetOrigins(RequestOrigins::OfProgram(recorded.program, observed, is_capacity_known, next));
  }
  const std::shared_ptr<const trace::RequestTrace> requests =
      whatif::SharedWhatIfRequests(recorded.program, input.settings.capacity_bytes.has_value());
  absl::StatusOr<std::vector<whatif::WhatIfRow>> rows = whatif::RunWhatIfs(
      *requests, input.settings, settings.progress, next, picture == nullptr ? nullptr : picture->watch());
  if (!rows.ok()) return rows.status();
  out.what_if = *std::move(rows);
  out.advice = whatif::Advise(out.what_if);
  absl::StatusOr<std::optional<whatif::OwnAllocator>> own = whatif::TryOwnAllocator(
      *requests, input.settings, next, {out.what_if, out.advice, !snapshot.recording.has_value()});
  if (!own.ok()) return own.status();
  out.own = *std::move(own);
  if (!recorded.warm.fidelity.IsExact()) {
    whatif::WithholdUnproven("", out.advice);
    out.own.reset();
  }
  if (const auto note = ContextNote(settings, snapshot); note.has_value() && !input.has_recorded_oom) {
    out.notes.push_back(*note);
  }
  const std::vector<trace::Note> notes = whatif::BaselineNotes(input, out.what_if.front());
  out.notes.insert(out.notes.end(), notes.begin(), notes.end());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Explanation> ExplainSnapshot(const trace::Snapshot& snapshot, const ExplainOptions& asked) {
  if (trace::RecordsDeviceCalls(snapshot)) return ExplainCalls(snapshot, asked);
  ExplainOptions options = asked;
  Explanation out;
  const absl::StatusOr<ObservedRun> run = ObserveSnapshot(snapshot, options.replay);
  if (!run.ok()) return run.status();
  const replay::RecordedReplay& recorded = run->recorded;
  const timeline::Timeline& observed = run->timeline;
  if (!options.replay.segment_addresses.has_value()) {
    options.replay.segment_addresses = replay::RecordedAddressOrder(observed.segments());
  }
  out.notes = NotesOfSettings(recorded.options);
  if (!options.replay.device.has_value()) NoteOtherDevices(snapshot, run->device, out);
  out.source = DescribeSnapshot(snapshot, *run);
  Tell(options.replay, "accounting for every byte");
  const TimelineContext context{&recorded.options, &snapshot.stacks, TotalOf(snapshot, options.replay), std::nullopt};
  analyses::CauseContext causes = CausesOf(snapshot, *run);
  ExplainTimeline(observed, context, *causes.history, out);
  out.labels = LinesByLabel(observed, causes.history->moment, snapshot.labels, kMostLabels);
  out.host = FiguresOf(snapshot.host);
  out.replayed_as = recorded.guess;
  if (recorded.warm.fidelity.total > 0) out.fidelity = recorded.warm.fidelity;
  NoteProgram(recorded.program, out);
  NoteMissing(*run, out);
  NoteUnwinding(observed, out);
  NoteEarlierPeak(observed, out);
  NoteReleases(recorded.program, snapshot.recording.has_value(), out);
  std::optional<PictureMaker> picture;
  if (options.picture.has_value()) picture.emplace(*options.picture, observed, &snapshot.stacks, snapshot.labels);
  PictureMaker* const maker = picture.has_value() ? &*picture : nullptr;
  if (absl::Status status = AddWhatIfs(snapshot, *run, causes.history->steps, options.replay, maker, out);
      !status.ok()) {
    return status;
  }
  if (absl::Status status = AddCauses(std::move(causes), *run, options, out); !status.ok()) return status;
  SetLastVerdict(out);
  out.notes.insert(out.notes.end(), snapshot.notes.begin(), snapshot.notes.end());
  if (maker != nullptr) {
    Tell(options.replay, "drawing");
    maker->AddHost(snapshot);
    maker->Finish(out);
  }
  return out;
}

}  // namespace ashlar::answers
