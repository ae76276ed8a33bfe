#include "analyzer/whatif/program_remedies.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_split.h"
#include "analyzer/analyses/causes/cause_table.h"
#include "analyzer/analyses/changes/program_changes.h"

namespace ashlar::whatif {

std::vector<ProgramRemedy> ProgramRemedies(absl::Span<const TestedCause> causes) {
  std::vector<ProgramRemedy> out;
  for (const TestedCause& cause : causes) {
    const bool is_sure = cause.finding.confidence != analyses::Confidence::kPossible;
    if (cause.finding.finding != analyses::Finding::kFound || !is_sure || cause.finding.is_footnote) continue;
    if (!cause.finding.is_sickness) continue;
    const analyses::ProgramChange* change = cause.finding.change;
    if (change == nullptr) change = analyses::SpecOf(cause.finding.kind).change;
    if (change == nullptr) continue;
    ProgramRemedy remedy;
    remedy.cause = cause.finding.kind;
    remedy.sentence = std::string(change->sentence);
    remedy.python = absl::StrSplit(change->python, '\n');
    remedy.bytes = cause.finding.bytes;
    remedy.from_outside = absl::StrSplit(change->from_outside, ',', absl::SkipEmpty());
    if (cause.fix.has_value() && !cause.fix->is_setting) {
      const std::uint64_t before = cause.fix->before.peak_reserved_bytes;
      remedy.replayed_bytes = before - std::min(before, cause.fix->after.peak_reserved_bytes);
      remedy.is_proven = cause.fix->removes_symptom;
    }
    out.push_back(std::move(remedy));
  }
  return out;
}

}  // namespace ashlar::whatif
