#include "analyzer/analyses/causes/cause.h"

#include <algorithm>
#include <tuple>

#include "analyzer/analyses/causes/cause_table.h"
#include "analyzer/analyses/causes/evidence.h"

namespace ashlar::analyses {
namespace {

const CauseRow& RowOf(CauseKind kind) { return CauseTable()[static_cast<std::size_t>(kind)]; }

// What `needs` asks for and is not there; empty where nothing is missing.
std::string MissingFor(CauseNeeds needs, const CauseContext& context) {
  if (needs == CauseNeeds::kAnything) return "";
  if (!context.history.has_value()) return kRecordHistory;
  if (needs == CauseNeeds::kState) return "";
  if (!context.history->timeline->HasAllocations()) return kRecordHistory;
  if (needs == CauseNeeds::kStacks && !context.history->HasStacks()) {
    return "call stacks would tell: record them with _record_memory_history(stacks=\"python\")";
  }
  if (needs == CauseNeeds::kSteps && context.history->steps.source == StepSource::kNone) {
    return "the program's steps would tell: record several whole ones, or mark them with "
           "torch.profiler.record_function";
  }
  return "";
}

CauseFinding Detect(const CauseRow& row, const CauseContext& context) {
  std::string missing = MissingFor(row.needs, context);
  CauseFinding out = missing.empty() ? row.detect(context) : NotInTrace(row.kind, std::move(missing));
  out.kind = row.kind;
  return out;
}

}  // namespace

absl::string_view CauseName(CauseKind kind) { return RowOf(kind).name; }

absl::string_view CauseSentence(CauseKind kind) { return RowOf(kind).sentence; }

absl::Span<const CauseFix> CauseFixes(CauseKind kind) { return RowOf(kind).fixes; }

absl::string_view FindingName(Finding finding) {
  constexpr absl::string_view kNames[] = {"found", "absent", "not_in_trace"};
  return kNames[static_cast<std::size_t>(finding)];
}

absl::string_view ConfidenceName(Confidence confidence) {
  constexpr absl::string_view kNames[] = {"possible", "likely", "proven"};
  return kNames[static_cast<std::size_t>(confidence)];
}

void SortCauses(std::vector<CauseFinding>& findings) {
  const auto key = [](const CauseFinding& finding) {
    const bool is_found = finding.finding == Finding::kFound;
    return std::tuple(finding.finding, is_found ? -static_cast<int>(finding.confidence) : 0,
                      is_found ? ~finding.bytes : 0, finding.kind);
  };
  std::sort(findings.begin(), findings.end(),
            [&key](const CauseFinding& a, const CauseFinding& b) { return key(a) < key(b); });
}

std::vector<CauseFinding> FindCauses(const CauseContext& context) {
  std::vector<CauseFinding> out;
  for (const CauseRow& row : CauseTable()) out.push_back(Detect(row, context));
  SortCauses(out);
  return out;
}

}  // namespace ashlar::analyses
