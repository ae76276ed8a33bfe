#include "commands/export/export.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "commands/export/csv.h"
#include "commands/export/exported_run.h"
#include "commands/export/flame_graphs.h"
#include "commands/export/open_metrics.h"
#include "commands/export/perfetto.h"
#include "commands/export/tables.h"

namespace ashlar::exports {
namespace {

using Notes = std::vector<trace::Note>;

std::uint64_t CountOf(timeline::EventIndex events) { return static_cast<std::uint64_t>(events); }

// The same note of several devices is one note.
void AddNote(Notes& notes, const char* name, const char* message, std::uint64_t count) {
  if (count == 0) return;
  const auto known =
      std::find_if(notes.begin(), notes.end(), [&](const trace::Note& note) { return note.name == name; });
  if (known == notes.end()) {
    notes.push_back({name, message, count});
  } else {
    known->count += count;
  }
}

// `write` for each run, as it is called with a run's timeline alone or with its explanation.
absl::StatusOr<Notes> WriteEach(const answers::Input& input, const answers::ReplaySettings& settings, With with,
                                absl::FunctionRef<void(const ExportedRun&, Notes&)> write) {
  Notes notes;
  absl::Status status = ForEachRun(input, settings, with, [&](const ExportedRun& run) {
    write(run, notes);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return notes;
}

bool HasNoTimes(const ExportedRun& run) {
  const absl::Span<const trace::Event> events = run.traced.timeline.events();
  return std::all_of(events.begin(), events.end(),
                     [](const trace::Event& event) { return event.time_us == trace::kNoTime; });
}

absl::StatusOr<Notes> WritePerfetto(const answers::Input& input, const answers::ReplaySettings& settings,
                                    ByteSink& out) {
  PerfettoWriter writer(out);
  return WriteEach(input, settings, With::kTimeline, [&](const ExportedRun& run, Notes& notes) {
    writer.Add(run);
    AddNote(notes, "no_blocks", "blocks, of which the sums alone are written", run.traced.timeline.blocks().size());
    AddNote(notes, "no_stacks", "call stacks, of which a segment's line alone is written",
            run.traced.stacks.stack_count());
    AddNote(notes, "no_times", "events without a time, written one microsecond apart",
            HasNoTimes(run) ? CountOf(run.traced.timeline.event_count()) : 0);
  });
}

void NoteMomentAlone(const ExportedRun& run, Notes& notes) {
  AddNote(notes, "one_moment", "events, of which the state at one moment is written",
          CountOf(run.traced.timeline.event_count()));
}

absl::StatusOr<Notes> WriteFoldedStacks(const answers::Input& input, const answers::ReplaySettings& settings,
                                        ByteSink& out) {
  const bool names_device = RunCount(input, settings) > 1;
  return WriteEach(input, settings, With::kTimeline, [&](const ExportedRun& run, Notes& notes) {
    WriteFolded(run, names_device, out);
    NoteMomentAlone(run, notes);
  });
}

absl::StatusOr<Notes> WriteSpeedscope(const answers::Input& input, const answers::ReplaySettings& settings,
                                      ByteSink& out) {
  SpeedscopeWriter writer(out);
  absl::StatusOr<Notes> notes = WriteEach(input, settings, With::kTimeline, [&](const ExportedRun& run, Notes& of_run) {
    writer.Add(run);
    NoteMomentAlone(run, of_run);
  });
  writer.Finish();
  return notes;
}

absl::StatusOr<Notes> WriteOpenMetrics(const answers::Input& input, const answers::ReplaySettings& settings,
                                       ByteSink& out) {
  OpenMetrics metrics;
  absl::StatusOr<Notes> notes =
      WriteEach(input, settings, With::kExplanation, [&](const ExportedRun& run, Notes& of_run) {
        metrics.Add(run);
        AddNote(of_run, "figures_alone", "events, of which the figures of the answer are written",
                CountOf(run.traced.timeline.event_count()));
      });
  metrics.Write(out);
  return notes;
}

absl::StatusOr<Notes> WriteEvents(const answers::Input& input, const answers::ReplaySettings& settings, ByteSink& out) {
  WriteEventCsvHeader(out);
  return WriteEach(input, settings, With::kTimeline, [&](const ExportedRun& run, Notes& notes) {
    WriteEventCsv(run, out);
    AddNote(notes, "line_alone", "call stacks, of which the program's own line is written",
            run.traced.stacks.stack_count());
  });
}

absl::StatusOr<Notes> WriteRmm(const answers::Input& input, const answers::ReplaySettings& settings, ByteSink& out) {
  answers::ReplaySettings of_one = settings;
  if (input.snapshot() != nullptr) {
    const absl::StatusOr<timeline::DeviceTrace> chosen = answers::ChooseDevice(*input.snapshot(), settings.device);
    if (!chosen.ok()) return chosen.status();
    of_one.device = chosen->device;
  }
  return WriteEach(input, of_one, With::kTimeline, [&](const ExportedRun& run, Notes& notes) {
    for (const trace::Note& note : WriteRmmLog(run, out)) {
      if (note.count > 0) notes.push_back(note);
    }
    AddNote(notes, "rmm_devices", "devices beside the one that is written: choose one with --device",
            RunCount(input, settings) - 1);
  });
}

}  // namespace

absl::StatusOr<Notes> Export(const answers::Input& input, ExportFormat format, const answers::ReplaySettings& settings,
                             ByteSink& out) {
  switch (format) {
    case ExportFormat::kPerfetto:
      return WritePerfetto(input, settings, out);
    case ExportFormat::kFolded:
      return WriteFoldedStacks(input, settings, out);
    case ExportFormat::kSpeedscope:
      return WriteSpeedscope(input, settings, out);
    case ExportFormat::kOpenMetrics:
      return WriteOpenMetrics(input, settings, out);
    case ExportFormat::kEvents:
      return WriteEvents(input, settings, out);
    case ExportFormat::kRmmLog:
      return WriteRmm(input, settings, out);
  }
  return absl::InternalError("no such format");
}

absl::StatusOr<Notes> ExportTables(const answers::Input& input, const answers::ReplaySettings& settings,
                                   TableSink& out) {
  bool has_stacks = false;
  return WriteEach(input, settings, With::kExplanation, [&](const ExportedRun& run, Notes& notes) {
    if (!std::exchange(has_stacks, true)) WriteStackTables(run.traced.stacks, out);
    WriteRunTables(run, out);
    AddNote(notes, "no_annotations", "marks of the program, of which the phases they make are written",
            run.traced.annotations.size());
  });
}

}  // namespace ashlar::exports
