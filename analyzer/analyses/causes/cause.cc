#include "analyzer/analyses/causes/cause.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "allocator/base/check.h"
#include "analyzer/analyses/causes/cause_table.h"
#include "analyzer/analyses/causes/evidence.h"
#include "analyzer/analyses/holders/variables.h"

namespace ashlar::analyses {
namespace {

std::optional<FailedRequest> FailureOf(const timeline::Timeline& timeline, const policy::Options* options) {
  if (timeline.oom_events().empty() || options == nullptr) return std::nullopt;
  return ExamineFailure(timeline, timeline.oom_events().back(), *options);
}

// What its owners call parts of one model was made part by part, in a loop that looks like steps: no step leaves it.
void DropPartsOfModels(const timeline::Timeline& timeline, const HeldByName& held, std::vector<Leak>& leaks) {
  std::map<trace::StackId, std::uint64_t> bytes_of;
  std::map<trace::StackId, std::uint64_t> model_bytes_of;
  for (const auto& [block, row] : held.row_of) {
    const timeline::BlockSpan& span = timeline.blocks()[block];
    bytes_of[span.stack] += span.size_bytes;
    if (IsOfOneModel(held.rows[row].holder)) model_bytes_of[span.stack] += span.size_bytes;
  }
  leaks.erase(std::remove_if(leaks.begin(), leaks.end(),
                             [&](const Leak& leak) { return 2 * model_bytes_of[leak.stack] > bytes_of[leak.stack]; }),
              leaks.end());
}

}  // namespace

timeline::EventIndex MomentOf(const timeline::Timeline& timeline) {
  if (!timeline.oom_events().empty()) return timeline.oom_events().back();
  return timeline.event_count() == 0 ? timeline::kBeforeWindow : timeline.allocated_peak().event;
}

CauseContext ContextOf(const timeline::Timeline& timeline, const CauseFacts& facts) {
  const timeline::EventIndex moment = MomentOf(timeline);
  Steps steps = FindSteps(timeline, facts.stacks, facts.annotations);
  std::optional<HeldByName> held =
      facts.named == nullptr ? std::nullopt : NamesAt(moment, *facts.named, timeline, steps);
  if (held.has_value() && held->Decides(moment)) DropPartsOfModels(timeline, *held, steps.leaks);
  std::vector<LeakGrowth> leaks =
      FindLeakGrowths(timeline, moment, facts.stacks, steps, held.has_value() ? &*held : nullptr);
  return {.history = CauseHistory{.timeline = &timeline,
                                  .moment = moment,
                                  .state = timeline.StateAt(moment),
                                  .stacks = facts.stacks,
                                  .options = facts.options,
                                  .settings = facts.settings,
                                  .steps = std::move(steps),
                                  .leaks = std::move(leaks),
                                  .pins = BlamePins(timeline, moment),
                                  .failed = FailureOf(timeline, facts.options),
                                  .growths = AvoidableGrowths(
                                      timeline, facts.options != nullptr ? *facts.options : policy::Options{}),
                                  .held = std::move(held)},
          .device = facts.device};
}

namespace {

std::vector<CauseSpec> AllThemes() {
  std::vector<CauseSpec> out;
  for (const absl::Span<const CauseSpec> theme :
       {ActivationsCauses(), CopiesCauses(), DeviceCauses(), HistoryCauses(), HolesCauses(), LeaksCauses(),
        LongLivedCauses(), OptimizerCauses(), PhasesCauses(), SettingsCauses()}) {
    out.insert(out.end(), theme.begin(), theme.end());
  }
  std::sort(out.begin(), out.end(), [](const CauseSpec& a, const CauseSpec& b) { return a.kind < b.kind; });
  for (std::size_t i = 0; i < out.size(); ++i) ASHLAR_CHECK(out[i].kind == static_cast<CauseKind>(i));
  return out;
}

// What `needs` asks for and is not there; empty where nothing is missing.
std::string MissingFor(CauseNeeds needs, const CauseContext& context) {
  if (needs == CauseNeeds::kAnything) return "";
  if (!context.history.has_value()) return kRecordHistory;
  if (needs == CauseNeeds::kState) return "";
  if (!context.history->timeline->HasAllocations()) return kRecordHistory;
  if (needs == CauseNeeds::kStacks && !context.history->HasStacks()) {
    return "call stacks would tell: record them with _record_memory_history(stacks=\"python\")";
  }
  return "";
}

CauseFinding Detect(const CauseSpec& row, const CauseContext& context) {
  std::string missing = MissingFor(row.needs, context);
  CauseFinding out = missing.empty() ? row.detect(context) : NotInTrace(row.kind, std::move(missing));
  out.kind = row.kind;
  out.is_footnote = out.finding == Finding::kFound && !row.frees_nothing && IsTrifle(context, out.bytes);
  return out;
}

double WeightOf(Confidence confidence) {
  constexpr double kWeights[] = {0.4, 0.8, 1.0};
  return kWeights[static_cast<std::size_t>(confidence)];
}

// What says that there are holes, and not where they come from.
bool IsGenericHole(CauseKind kind) { return SpecOf(kind).holes == CauseHoles::kSeen; }

// A cause of holes explains those of a generic one from this share of its bytes on.
constexpr double kExplainsShare = 1.0 / 3;

bool Explains(const CauseFinding& cause, const CauseFinding& generic) {
  if (cause.finding != Finding::kFound || cause.is_footnote || SpecOf(cause.kind).holes != CauseHoles::kMade) {
    return false;
  }
  if (cause.confidence < generic.confidence && cause.confidence == Confidence::kPossible) return false;
  // What is returned in a retry is the whole cache, not what the cause takes.
  return generic.kind == CauseKind::kRetryStorm ||
         static_cast<double>(cause.bytes) >= kExplainsShare * static_cast<double>(generic.bytes);
}

double FreedBytes(const CauseFinding& finding) {
  return static_cast<double>(finding.bytes) * SpecOf(finding.kind).FreedShare();
}

double Weight(const CauseFinding& finding) {
  constexpr double kOwned = 2;
  const bool is_owned = !finding.holders.empty() && finding.is_sickness && !finding.is_needed;
  return finding.finding == Finding::kFound
             ? FreedBytes(finding) * WeightOf(finding.confidence) * (is_owned ? kOwned : 1)
             : 0;
}

// The weight of one that frees nothing: behind all that free much.
double YieldingWeight(const CauseFinding& finding, const std::vector<CauseFinding>& findings) {
  double out = Weight(finding);
  for (const CauseFinding& other : findings) {
    if (other.finding != Finding::kFound || other.is_footnote || other.yields_to_bytes > 0) continue;
    if (FreedBytes(other) >= static_cast<double>(finding.yields_to_bytes)) out = std::min(out, Weight(other) / 2);
  }
  return out;
}

// Whether half of the blocks that hold segments are what a variable piles up, and that is no trifle beside the holes:
// it makes them, and will make more.
bool PilesUpBefore(const CauseFinding& leak, const CauseFinding& pinned) {
  constexpr std::uint64_t kLeastPart = 5;
  const bool may = leak.finding == Finding::kFound && leak.is_sickness && !leak.is_needed && !leak.holders.empty() &&
                   pinned.finding == Finding::kFound && !pinned.blocks.empty() &&
                   kLeastPart * leak.bytes >= pinned.bytes;
  const std::set<std::size_t> piled(leak.blocks.begin(), leak.blocks.end());
  const auto is_piled = [&piled](std::size_t block) { return piled.count(block) > 0; };
  return may && 2 * static_cast<std::size_t>(std::count_if(pinned.blocks.begin(), pinned.blocks.end(), is_piled)) >=
                    pinned.blocks.size();
}

// Behind what piles up, which has the holes besides.
void GiveHolesToTheirMakers(const std::vector<CauseFinding>& findings, std::map<CauseKind, double>& weights) {
  for (const CauseFinding& pinned : findings) {
    if (pinned.kind != CauseKind::kPinnedSegment) continue;
    for (const CauseFinding& leak : findings) {
      if (leak.kind != pinned.kind && PilesUpBefore(leak, pinned)) weights[leak.kind] += Weight(pinned);
    }
  }
}

std::map<CauseKind, double> Weights(const std::vector<CauseFinding>& findings) {
  std::map<CauseKind, double> out;
  for (const CauseFinding& finding : findings) out[finding.kind] = Weight(finding);
  GiveHolesToTheirMakers(findings, out);
  for (const CauseFinding& generic : findings) {
    if (!IsGenericHole(generic.kind) || generic.finding != Finding::kFound) continue;
    double most = 0;
    for (const CauseFinding& cause : findings) {
      if (Explains(cause, generic)) most = std::max(most, Weight(cause));
    }
    if (most > 0) out[generic.kind] = std::min(out[generic.kind], most / 2);
  }
  for (const CauseFinding& finding : findings) {
    if (finding.yields_to_bytes > 0) out[finding.kind] = YieldingWeight(finding, findings);
  }
  return out;
}

}  // namespace

absl::Span<const CauseSpec> CauseTable() {
  static const auto* const kAll = new std::vector<CauseSpec>(AllThemes());
  return *kAll;
}

const CauseSpec& SpecOf(CauseKind kind) { return CauseTable()[static_cast<std::size_t>(kind)]; }

absl::string_view CauseName(CauseKind kind) { return SpecOf(kind).name; }

absl::string_view CauseSentence(CauseKind kind) { return SpecOf(kind).sentence; }

absl::string_view FindingName(Finding finding) {
  constexpr absl::string_view kNames[] = {"found", "absent", "not_in_trace"};
  return kNames[static_cast<std::size_t>(finding)];
}

absl::string_view ConfidenceName(Confidence confidence) {
  constexpr absl::string_view kNames[] = {"possible", "likely", "proven"};
  return kNames[static_cast<std::size_t>(confidence)];
}

void SortCauses(std::vector<CauseFinding>& findings) {
  const std::map<CauseKind, double> weights = Weights(findings);
  const auto key = [&weights](const CauseFinding& finding) {
    return std::tuple(finding.finding, finding.is_footnote, -weights.at(finding.kind), finding.kind);
  };
  std::sort(findings.begin(), findings.end(),
            [&key](const CauseFinding& a, const CauseFinding& b) { return key(a) < key(b); });
}

std::vector<CauseFinding> FindCauses(const CauseContext& context) {
  std::vector<CauseFinding> out;
  for (const CauseSpec& row : CauseTable()) out.push_back(Detect(row, context));
  SortCauses(out);
  return out;
}

}  // namespace ashlar::analyses
