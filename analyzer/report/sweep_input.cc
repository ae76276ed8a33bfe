#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "analyzer/readers/plain/plain_trace.h"
#include "analyzer/readers/snapshot.h"
#include "analyzer/readers/sniff.h"
#include "analyzer/report/explain_calls.h"
#include "analyzer/report/sweep_report.h"
#include "analyzer/report/traced_run.h"

namespace ashlar::report {
namespace {

bool HasAllocation(const trace::RequestTrace& requests) {
  for (const trace::Request& request : requests.requests) {
    if (request.kind == trace::RequestKind::kAlloc && request.bytes > 0) return true;
  }
  return false;
}

absl::StatusOr<remedies::WhatIfInput> FromSnapshot(absl::string_view bytes, const ExplainOptions& options) {
  const absl::StatusOr<trace::Snapshot> snapshot = readers::ReadSnapshot(bytes);
  if (!snapshot.ok()) return snapshot.status();
  if (trace::RecordsDeviceCalls(*snapshot)) return absl::InvalidArgumentError(kNoSettings);
  const absl::StatusOr<ObservedRun> run = ObserveSnapshot(*snapshot, options);
  if (!run.ok()) return run.status();
  if (run->recorded.warm.fidelity.total == 0) {
    return absl::InvalidArgumentError(
        "the snapshot records no allocations, so there is nothing to replay; record them with "
        "torch.cuda.memory._record_memory_history() before the run");
  }
  remedies::WhatIfInput out = remedies::InputOf(run->recorded, run->timeline, LimitsOf(options));
  out.source = DescribeSnapshot(*snapshot, *run);
  out.notes = snapshot->notes;
  return out;
}

absl::StatusOr<remedies::WhatIfInput> FromRequests(absl::string_view bytes, const ExplainOptions& options) {
  if (options.device.has_value()) {
    return absl::OutOfRangeError("--device needs a snapshot: this input has one device only");
  }
  const absl::StatusOr<trace::RequestTrace> requests = readers::ParsePlainTrace(bytes);
  if (!requests.ok()) return requests.status();
  if (!HasAllocation(*requests)) return absl::InvalidArgumentError("the trace has no allocation to replay");
  const absl::StatusOr<policy::Options> baseline = remedies::WishedOptions(options.wishes);
  if (!baseline.ok()) return baseline.status();
  return remedies::InputOf(*requests, *baseline, LimitsOf(options));
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

std::vector<trace::Note> NotesOfTrace(const SweepReport& report, std::size_t trace) {
  const remedies::WhatIfInput& input = report.inputs[trace];
  std::vector<trace::Note> out = {{"replayed_as", input.replayed_as, 1}};
  out.push_back({"fidelity",
                 input.fidelity.has_value() ? FidelitySentence(*input.fidelity)
                                            : "a request trace records no addresses to compare a replay with",
                 1});
  if (!input.settings.capacity_bytes.has_value()) {
    out.push_back({"capacity_unknown",
                   "how much memory the device has is not in this trace; give --capacity 16GiB to see what fits", 1});
  }
  const remedies::SweepRow& baseline = report.result.rows[report.result.baseline];
  for (trace::Note& note : remedies::BaselineNotes(input, baseline.traces[trace])) out.push_back(std::move(note));
  out.insert(out.end(), input.notes.begin(), input.notes.end());
  return out;
}

}  // namespace

absl::StatusOr<remedies::WhatIfInput> ReadSweepInput(const std::string& name, absl::string_view bytes,
                                                     const ExplainOptions& options) {
  const readers::InputKind kind = readers::Sniff(bytes);
  const bool is_snapshot = readers::IsSnapshot(kind);
  if (!is_snapshot && kind != readers::InputKind::kPlainTrace) {
    return absl::InvalidArgumentError(
        absl::StrCat("this is ", readers::InputKindName(kind), ", not a PyTorch memory snapshot or a request trace"));
  }
  absl::StatusOr<remedies::WhatIfInput> out = is_snapshot ? FromSnapshot(bytes, options) : FromRequests(bytes, options);
  if (out.ok()) out->name = name;
  return out;
}

std::vector<SweepNote> NotesOf(const SweepReport& report) {
  std::vector<SweepNote> out;
  for (std::size_t trace = 0; trace < report.inputs.size(); ++trace) {
    for (const trace::Note& note : NotesOfTrace(report, trace)) {
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

}  // namespace ashlar::report
