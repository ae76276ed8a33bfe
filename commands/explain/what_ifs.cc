#include "commands/explain/what_ifs.h"

#include <memory>
#include <utility>

#include "analyzer/whatif/what_if_input.h"
#include "commands/explain/picture/picture_maker.h"

namespace ashlar::answers {
namespace {

// The rows, what they advise, and our own allocator's.
absl::StatusOr<WhatIfs> Replayed(const trace::RequestTrace& requests, const whatif::WhatIfSettings& settings,
                                 const analyses::Continuation* next, bool is_pytorch, const Progress& progress,
                                 PictureMaker* picture) {
  WhatIfs out;
  absl::StatusOr<std::vector<whatif::WhatIfRow>> rows =
      whatif::RunWhatIfs(requests, settings, progress, next, picture == nullptr ? nullptr : picture->watch());
  if (!rows.ok()) return rows.status();
  out.rows = *std::move(rows);
  out.advice = whatif::Advise(out.rows);
  absl::StatusOr<std::optional<whatif::OwnAllocator>> own =
      whatif::TryOwnAllocator(requests, settings, next, {out.rows, out.advice, is_pytorch});
  if (!own.ok()) return own.status();
  out.own = *std::move(own);
  return out;
}

}  // namespace

absl::StatusOr<NotedWhatIfs> TrySettings(const trace::Snapshot& snapshot, const ObservedRun& run,
                                         const analyses::Steps& steps, const ReplaySettings& settings,
                                         PictureMaker* picture) {
  const replay::RecordedReplay& recorded = run.recorded;
  NotedWhatIfs out;
  if (recorded.warm.fidelity.total == 0) {
    out.what_ifs.replayed_as = recorded.guess;
    out.what_ifs.advice.sentence =
        "what other settings would have done is not in this trace: it has no allocations to replay";
    return out;
  }
  const whatif::WhatIfInput input =
      whatif::InputWithoutRequests(recorded, run.timeline, LimitsOf(WithContext(settings, snapshot)));
  const bool is_capacity_known = input.settings.capacity_bytes.has_value();
  out.next = whatif::ProjectionOf(recorded.program, run.timeline, snapshot.stacks, steps);
  const analyses::Continuation* next = out.next.has_value() ? &*out.next : nullptr;
  if (picture != nullptr) {
    picture->SetOrigins(RequestOrigins::OfProgram(recorded.program, run.timeline, is_capacity_known, next));
  }
  const std::shared_ptr<const trace::RequestTrace> requests =
      whatif::SharedWhatIfRequests(recorded.program, is_capacity_known);
  absl::StatusOr<WhatIfs> replayed =
      Replayed(*requests, input.settings, next, !snapshot.recording.has_value(), settings.progress, picture);
  if (!replayed.ok()) return replayed.status();
  out.what_ifs = *std::move(replayed);
  out.what_ifs.fidelity = input.fidelity;
  out.what_ifs.replayed_as = input.replayed_as;
  out.what_ifs.capacity_bytes = input.settings.capacity_bytes;
  if (!recorded.warm.fidelity.IsExact()) {
    whatif::WithholdUnproven("", out.what_ifs.advice);
    out.what_ifs.own.reset();
  }
  if (const auto note = ContextNote(settings, snapshot); note.has_value() && !input.has_recorded_oom) {
    out.notes.push_back(*note);
  }
  const std::vector<trace::Note> notes = whatif::BaselineNotes(input, out.what_ifs.rows.front());
  out.notes.insert(out.notes.end(), notes.begin(), notes.end());
  return out;
}

absl::StatusOr<WhatIfs> TrySettingsOnRequests(const trace::RequestTrace& requests, const ReplayedRun& run,
                                              const ReplaySettings& settings, PictureMaker* picture) {
  const whatif::WhatIfInput input = whatif::InputWithoutRequests(requests, run.options, LimitsOf(settings));
  absl::StatusOr<WhatIfs> out =
      Replayed(requests, input.settings, nullptr, /*is_pytorch=*/false, settings.progress, picture);
  if (!out.ok()) return out;
  out->replayed_as = input.replayed_as;
  out->capacity_bytes = AllocatorBytes(settings);
  return out;
}

WhatIfs Withheld(WhatIfs what_ifs, std::string because) {
  what_ifs.advice.paste.reset();
  what_ifs.own.reset();
  what_ifs.advice.sentence = std::move(because);
  return what_ifs;
}

}  // namespace ashlar::answers
