#include "analyzer/answers/sweep.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "analyzer/answers/explain_calls.h"
#include "analyzer/answers/traced_run.h"
#include "analyzer/remedies/projection.h"

namespace ashlar::answers {
namespace {

bool HasAllocation(const trace::RequestTrace& requests) {
  for (const trace::Op& request : requests.requests) {
    if (request.kind == trace::OpKind::kAlloc && request.bytes > 0) return true;
  }
  return false;
}

absl::StatusOr<remedies::WhatIfInput> FromSnapshot(const trace::Snapshot& snapshot, const ReplaySettings& settings) {
  if (trace::RecordsDeviceCalls(snapshot)) return absl::InvalidArgumentError(kNoSettings);
  const absl::StatusOr<ObservedRun> run = ObserveSnapshot(snapshot, settings);
  if (!run.ok()) return run.status();
  if (run->recorded.warm.fidelity.total == 0) {
    return absl::InvalidArgumentError(
        "the snapshot records no allocations, so there is nothing to replay; record them with "
        "torch.cuda.memory._record_memory_history() before the run");
  }
  remedies::WhatIfInput out =
      remedies::InputOf(run->recorded, run->timeline, LimitsOf(WithContext(settings, snapshot)));
  out.next = remedies::ProjectionOf(run->recorded.program, run->timeline, snapshot.stacks,
                                    analyses::FindSteps(run->timeline, &snapshot.stacks, snapshot.annotations));
  out.source = DescribeSnapshot(snapshot, *run);
  out.notes = NotesOfSettings(run->recorded.options);
  if (const auto note = ContextNote(settings, snapshot); note.has_value() && !out.has_recorded_oom) {
    out.notes.push_back(*note);
  }
  out.notes.insert(out.notes.end(), snapshot.notes.begin(), snapshot.notes.end());
  return out;
}

absl::StatusOr<remedies::WhatIfInput> FromRequests(const trace::RequestTrace& requests,
                                                   const ReplaySettings& settings) {
  if (settings.device.has_value()) {
    return absl::OutOfRangeError("--device needs a snapshot: this input has one device only");
  }
  if (!HasAllocation(requests)) return absl::InvalidArgumentError("the trace has no allocation to replay");
  const absl::StatusOr<policy::Options> baseline = remedies::OverriddenOptions(settings.overrides);
  if (!baseline.ok()) return baseline.status();
  remedies::WhatIfInput out = remedies::InputOf(requests, *baseline, LimitsOf(settings));
  out.notes = requests.notes;
  return out;
}

std::string FidelitySentence(const replay::Fidelity& fidelity) {
  std::string out = absl::StrFormat("baseline fidelity %.2f %%: %s of %s addresses",
                                    100.0 * static_cast<double>(fidelity.matched) / static_cast<double>(fidelity.total),
                                    FormatCount(fidelity.matched), FormatCount(fidelity.total));
  if (!fidelity.IsExact()) {
    absl::StrAppend(&out, "; the replay of the recorded settings is not exact: take what other settings do with care");
  }
  return out;
}

std::vector<trace::Note> NotesOfTrace(const SweepAnswer& answer, std::size_t trace) {
  const remedies::WhatIfInput& input = answer.inputs[trace];
  std::vector<trace::Note> out = {{"replayed_as", input.replayed_as, 1}};
  out.push_back({"fidelity",
                 input.fidelity.has_value() ? FidelitySentence(*input.fidelity)
                                            : "a request trace records no addresses to compare a replay with",
                 1});
  if (!input.settings.capacity_bytes.has_value()) {
    out.push_back({"capacity_unknown",
                   "how much memory the device has is not in this trace; give --capacity 16GiB to see what fits", 1});
  }
  const remedies::SweepRow& baseline = answer.result.rows[answer.result.baseline];
  for (trace::Note& note : remedies::BaselineNotes(input, baseline.traces[trace])) out.push_back(std::move(note));
  out.insert(out.end(), input.notes.begin(), input.notes.end());
  return out;
}

}  // namespace

absl::StatusOr<WhatIfInput> SweepInputOf(const std::string& name, const Input& input, const ReplaySettings& settings) {
  if (input.snapshot() == nullptr && input.requests() == nullptr) {
    return absl::InvalidArgumentError("this input holds no trace");
  }
  absl::StatusOr<remedies::WhatIfInput> out = input.snapshot() != nullptr ? FromSnapshot(*input.snapshot(), settings)
                                                                          : FromRequests(*input.requests(), settings);
  if (out.ok()) out->name = name;
  return out;
}

absl::StatusOr<SweepAnswer> Sweep(std::vector<WhatIfInput> inputs, const SweepOptions& options) {
  absl::StatusOr<remedies::SweepResult> result = remedies::RunSweep(inputs, options);
  if (!result.ok()) return result.status();
  const auto inexact = std::find_if(inputs.begin(), inputs.end(), [](const WhatIfInput& input) {
    return input.fidelity.has_value() && !input.fidelity->IsExact();
  });
  if (inexact != inputs.end()) {
    const std::string where = inputs.size() > 1 && !inexact->name.empty() ? absl::StrCat("in ", inexact->name) : "";
    remedies::WithholdUnproven(where, result->advice);
  }
  return SweepAnswer{std::move(inputs), *std::move(result)};
}

std::vector<SweepNote> NotesOf(const SweepAnswer& answer) {
  std::vector<SweepNote> out;
  for (std::size_t trace = 0; trace < answer.inputs.size(); ++trace) {
    for (const trace::Note& note : NotesOfTrace(answer, trace)) {
      const auto same = std::find_if(out.begin(), out.end(), [&note](const SweepNote& other) {
        return other.name == note.name && other.message == note.message;
      });
      SweepNote& folded = same != out.end() ? *same : out.emplace_back(SweepNote{note.name, note.message, {}, {}});
      folded.traces.push_back(trace);
      folded.counts.push_back(note.count);
    }
  }
  return out;
}

}  // namespace ashlar::answers
