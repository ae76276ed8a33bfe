#include "analyzer/whatif/fix_tests.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/causes/cause_table.h"
#include "analyzer/analyses/changes/program_changes.h"
#include "analyzer/analyses/steps/program_part.h"
#include "analyzer/whatif/request_transforms.h"
#include "analyzer/whatif/step_order.h"

namespace ashlar::whatif {
namespace {

using analyses::CauseContext;
using analyses::CauseFinding;
using analyses::CauseFix;
using analyses::CauseHistory;
using analyses::CauseKind;
using analyses::Confidence;
using timeline::EventIndex;
using trace::RequestTrace;

constexpr double kLeastSavedShare = 0.02;
constexpr char kExpandable[] = "expandable_segments:True";

// What it says for a cause that the symptom goes.
enum class Weight : std::uint8_t {
  kNothing,   // it takes other causes away as well
  kSupports,  // the cause's blocks are elsewhere, and all others may lie otherwise too
  kProves,    // the same requests under another setting, or with other calls of the program
};

// One way to take a cause away. What is not changed is nullptr or nullopt.
struct Change {
  std::string what;
  std::string conf = {};
  std::function<RequestTrace(const RequestTrace&)> requests = {};
  std::optional<policy::Options> options = {};
  std::uint64_t more_capacity_bytes = 0;
  Weight weight = Weight::kProves;
  const analyses::ProgramChange* program = nullptr;  // what the user writes, in place of what the cause's row says
  bool must_carry_on = false;                        // after a failure: to the end of what is known of the run
};

class FixTester {
 public:
  FixTester(const CauseHistory& history, const RecordedRequests& requests, const WhatIfSettings& settings)
      : history_(history), requests_(requests), settings_(settings) {}

  absl::StatusOr<TestedCause> Test(CauseFinding finding) {
    TestedCause out;
    out.finding = std::move(finding);
    std::vector<Change> changes = ChangesFor(out.finding);
    for (Change& change : changes) {
      absl::StatusOr<FixTest> fix = Run(change, out.finding);
      if (!fix.ok()) return fix.status();
      if (change.program != nullptr && !fix->removes_symptom) continue;  // a remedy alone: no word on the cause
      if (!out.fix.has_value() || fix->removes_symptom) out.fix = *std::move(fix);
      if (!out.fix->removes_symptom) continue;
      if (change.weight == Weight::kProves) out.finding.confidence = Confidence::kProven;
      if (change.weight == Weight::kSupports)
        out.finding.confidence = std::max(out.finding.confidence, Confidence::kLikely);
      if (change.program != nullptr) out.finding.change = change.program;
      TakeReplayedBytes(out);
      break;
    }
    if (out.fix.has_value() && !out.fix->removes_symptom) Weigh(out);
    return out;
  }

 private:
  // What streams, or pools that were filled in turn, keep from each other no state shows. Without a failure it is what
  // their common replay saves.
  void TakeReplayedBytes(TestedCause& tested) const {
    const bool is_of_streams = tested.finding.kind == CauseKind::kStreamsDoNotShare;
    const bool is_of_pools = tested.finding.kind == CauseKind::kPrivatePools;
    if ((!is_of_streams && !is_of_pools) || !history_.timeline->oom_events().empty()) return;
    if (is_of_pools && PrivatePoolCount(*requests_.as_recorded) < 2) return;
    tested.finding.bytes = tested.fix->before.peak_reserved_bytes - tested.fix->after.peak_reserved_bytes;
    tested.finding.evidence.push_back(absl::StrCat("replayed ",
                                                   is_of_streams ? "on one stream" : "with one pool for all",
                                                   " the peak is lower by ", FormatBytes(tested.finding.bytes)));
  }

  // --- the ways ---
  std::vector<Change> ChangesFor(const CauseFinding& finding) {
    std::vector<Change> out;
    for (const CauseFix fix : analyses::SpecOf(finding.kind).fixes) {
      if (std::optional<Change> change = ChangeOf(fix, finding); change.has_value()) out.push_back(*std::move(change));
    }
    return out;
  }

  std::optional<Change> ChangeOf(CauseFix fix, const CauseFinding& finding) {
    switch (fix) {
      case CauseFix::kNone:
        return std::nullopt;
      case CauseFix::kApart:
        return Apart(finding);
      case CauseFix::kExpandable:
        return Expandable(Weight::kProves);
      case CauseFix::kExpandableHint:
        return Expandable(Weight::kNothing);
      case CauseFix::kUnrounded:
        return Unrounded();
      case CauseFix::kUnlimitedSplit:
        return Unlimited();
      case CauseFix::kNoWaits:
        return Change{.what = "frees that wait for no stream", .requests = WithoutWaits};
      case CauseFix::kOneStream:
        return Change{.what = "all requests on one stream", .requests = OnOneStream};
      case CauseFix::kSharedPool:
        if (PrivatePoolCount(*requests_.as_recorded) > 1) {
          return Change{.what = "one pool for all private pools", .requests = InOnePool};
        }
        return Change{.what = "all requests in the default pool", .requests = InDefaultPool};
      case CauseFix::kGivenBack:
        return GivenBack(finding);
      case CauseFix::kEmptyCache:
        return EmptiedBetweenPhases();
      case CauseFix::kStateAsleep:
        return StateAsleep();
      case CauseFix::kLargestFirst:
        return LargestFirst();
    }
    return std::nullopt;
  }

  std::optional<Change> Apart(const CauseFinding& finding) {
    std::optional<std::vector<std::uint32_t>> ids = IdsOf(finding);
    if (!ids.has_value()) return std::nullopt;
    return Change{.what = absl::StrCat(FormatCount(ids->size()), ids->size() == 1 ? " block" : " blocks",
                                       " in segments apart from all others"),
                  .requests = [ids = *std::move(ids)](const RequestTrace& r) { return InPoolOfTheirOwn(r, ids); },
                  .weight = Weight::kSupports};
  }

  std::optional<Change> Expandable(Weight weight) const {
    if (!policy::RulesOf(settings_.baseline.compat).has_expandable_segments || settings_.baseline.expandable_segments) {
      return std::nullopt;
    }
    policy::Options options = settings_.baseline;
    options.expandable_segments = true;
    options.conf = kExpandable;
    return Change{.what = kExpandable, .conf = kExpandable, .options = options, .weight = weight};
  }

  std::optional<Change> Unrounded() const {
    policy::Options options = settings_.baseline;
    if (options.roundup_power2_divisions == decltype(options.roundup_power2_divisions){}) return std::nullopt;
    options.roundup_power2_divisions = {};
    return Change{.what = "without roundup_power2_divisions", .options = options};
  }

  std::optional<Change> Unlimited() const {
    policy::Options options = settings_.baseline;
    options.max_split_size_bytes = policy::kUnlimited;
    return Change{.what = "without max_split_size_mb", .options = options};
  }

  // What others hold is of use only to a request that failed.
  std::optional<Change> GivenBack(const CauseFinding& finding) const {
    if (!settings_.capacity_bytes.has_value() || !finding.blocks.empty()) return std::nullopt;
    return Change{.what = absl::StrCat("with these ", FormatBytes(finding.bytes), " given back"),
                  .more_capacity_bytes = finding.bytes,
                  .weight = Weight::kNothing};
  }

  std::optional<Change> EmptiedBetweenPhases() const {
    if (!history_.HasStacks()) return std::nullopt;
    return Change{.what = "torch.cuda.empty_cache() where an evaluation begins and ends",
                  .requests = [this](const RequestTrace& r) {
                    std::vector<std::size_t> positions;
                    for (const RequestRange& evaluation : EvaluationsIn(r)) {
                      positions.push_back(evaluation.begin);
                      positions.push_back(evaluation.end);
                    }
                    return WithEmptyCacheAt(r, positions);
                  }};
  }

  // Nothing but its step uses an optimizer's state. What sleeps helps against whatever there is.
  std::optional<Change> StateAsleep() const {
    if (!policy::RulesOf(settings_.baseline.compat).has_expandable_segments) return std::nullopt;
    const analyses::ProgramParts parts(history_.stacks);
    std::vector<std::size_t> state;
    bool is_evaluated = false;
    for (std::size_t i = 0; i < history_.timeline->blocks().size(); ++i) {
      const analyses::ProgramPart part = parts.Of(history_.timeline->blocks()[i].stack);
      if (part == analyses::ProgramPart::kOptimizer) state.push_back(i);
      is_evaluated = is_evaluated || analyses::IsEvaluating(part);
    }
    if (state.empty() || !is_evaluated) return std::nullopt;
    return Change{.what = "the optimizer's state asleep while nothing is trained",
                  .requests =
                      [this, state](const RequestTrace& r) {
                        const std::optional<RequestPlaces> places = PlaceRequests(*history_.timeline, r);
                        return places.has_value() ? AsleepIn(r, places->IdsOf(state), EvaluationsIn(r)) : r;
                      },
                  .weight = Weight::kNothing,
                  .program = &analyses::changes::kStateAsleep};
  }

  std::optional<Change> LargestFirst() const {
    const bool is_failure = !history_.timeline->oom_events().empty();
    const RequestTrace& recorded = RequestsFor(settings_);
    const std::vector<std::size_t> begins = StepBegins(recorded);
    const std::optional<StepOrder> order = LargestStepsFirst(recorded, begins, !is_failure);
    if (!order.has_value() || (is_failure && requests_.next == nullptr)) return std::nullopt;
    return Change{.what = absl::StrCat("steps ", order->first + 1, " to ", order->first + order->count,
                                       " in another order, those that hold most first"),
                  .requests =
                      [begins, is_failure](const RequestTrace& r) {
                        std::optional<StepOrder> sorted = LargestStepsFirst(r, begins, !is_failure);
                        if (!sorted.has_value()) return r;
                        return std::move(sorted->requests);
                      },
                  .program = &analyses::changes::kLargestFirst,
                  .must_carry_on = is_failure};
  }

  // What follows the last whole step counts as one more.
  std::vector<std::size_t> StepBegins(const RequestTrace& requests) const {
    const std::vector<analyses::EventRange>& steps = history_.steps.steps;
    const std::optional<RequestPlaces> places = PlaceRequests(*history_.timeline, requests);
    std::vector<std::size_t> out;
    if (steps.empty() || history_.steps.told_from_sizes || !places.has_value()) return out;
    const auto add = [&](EventIndex event) {
      if (const std::optional<std::size_t> at = places->PositionFrom(event); at.has_value()) out.push_back(*at);
    };
    for (const analyses::EventRange& step : steps) add(step.begin);
    add(steps.back().end);
    return out;
  }

  // An evaluation lasts until something is trained; from the first request of each.
  std::vector<RequestRange> EvaluationsIn(const RequestTrace& requests) const {
    const std::optional<RequestPlaces> places = PlaceRequests(*history_.timeline, requests);
    if (!places.has_value()) return {};
    const analyses::ProgramParts parts(history_.stacks);
    std::vector<RequestRange> out;
    bool is_evaluation = false;
    for (std::size_t i = 0; i < places->events.size(); ++i) {
      const timeline::EventIndex event = places->events[i];
      if (event < 0) continue;  // before the window
      const analyses::ProgramPart part = parts.Of(history_.timeline->events()[static_cast<std::size_t>(event)].stack);
      if (!is_evaluation && analyses::IsEvaluating(part))
        out.push_back({places->positions[i], requests.requests.size()});
      if (is_evaluation && analyses::IsTraining(part)) out.back().end = places->positions[i];
      is_evaluation = is_evaluation ? !analyses::IsTraining(part) : analyses::IsEvaluating(part);
    }
    return out;
  }

  // --- the replays ---
  // A retry storm without a known capacity: the device held no more than the peak.
  WhatIfSettings SettingsFor(const CauseFinding& finding) const {
    WhatIfSettings out = settings_;
    if (finding.kind == CauseKind::kRetryStorm && !out.capacity_bytes.has_value()) {
      out.capacity_bytes = history_.timeline->reserved_peak().bytes;
    }
    return out;
  }

  const RequestTrace& RequestsFor(const WhatIfSettings& settings) const {
    return settings.capacity_bytes.has_value() ? *requests_.without_retries : *requests_.as_recorded;
  }

  absl::StatusOr<FixTest> Run(const Change& change, const CauseFinding& finding) {
    WhatIfSettings settings = SettingsFor(finding);
    const RequestTrace& requests = RequestsFor(settings);
    absl::StatusOr<WhatIfRow> before = Baseline(requests, settings);
    if (!before.ok()) return before.status();
    if (settings.capacity_bytes.has_value()) *settings.capacity_bytes += change.more_capacity_bytes;
    const policy::Options& options = change.options.has_value() ? *change.options : settings.baseline;
    std::optional<analyses::Continuation> next;
    if (change.must_carry_on) {
      next = *requests_.next;
      next->requests = change.requests(next->requests);
    }
    const bool is_changed_here = change.requests && !next.has_value();  // else what is replayed is changed already
    absl::StatusOr<WhatIfRow> after = RunWhatIf(is_changed_here ? change.requests(requests) : requests, settings,
                                                options, next.has_value() ? &*next : nullptr);
    if (!after.ok()) return after.status();
    FixTest out;
    out.change = change.what;
    out.setting = change.conf;
    out.is_setting = change.options.has_value();
    out.before = *std::move(before);
    out.after = *std::move(after);
    Judge(finding, out);
    const bool carries_on = out.after.projected.has_value() && out.after.projected->IsSafe();
    if (change.must_carry_on && !carries_on) out.removes_symptom = false;
    return out;
  }

  // The same for all causes but a retry storm without a known capacity.
  absl::StatusOr<WhatIfRow> Baseline(const RequestTrace& requests, const WhatIfSettings& settings) {
    const bool is_common = settings.capacity_bytes == settings_.capacity_bytes;
    if (is_common && baseline_.has_value()) return *baseline_;
    absl::StatusOr<WhatIfRow> row = RunWhatIf(requests, settings, settings.baseline);
    if (is_common && row.ok()) baseline_ = *row;
    return row;
  }

  void Judge(const CauseFinding& finding, FixTest& fix) const {
    const WhatIfRow& before = fix.before;
    const WhatIfRow& after = fix.after;
    if (!history_.timeline->oom_events().empty()) {
      fix.shows_symptom = before.ooms > 0;
      fix.removes_symptom = fix.shows_symptom && after.ooms == 0;
    } else if (finding.kind == CauseKind::kRetryStorm) {
      fix.shows_symptom = before.retries > 0;
      fix.removes_symptom = fix.shows_symptom && after.retries == 0 && after.ooms <= before.ooms;
    } else {
      const std::uint64_t recorded = history_.timeline->reserved_peak().bytes;
      fix.shows_symptom = 10 * before.peak_reserved_bytes >= 9 * recorded;
      const std::uint64_t saved =
          before.peak_reserved_bytes - std::min(before.peak_reserved_bytes, after.peak_reserved_bytes);
      const double least = kLeastSavedShare * static_cast<double>(before.peak_reserved_bytes);
      fix.removes_symptom = fix.shows_symptom && static_cast<double>(saved) >= least && 2 * saved >= finding.bytes;
    }
  }

  // Of a fix that removed nothing.
  static void Weigh(TestedCause& tested) {
    const FixTest& fix = *tested.fix;
    CauseFinding& finding = tested.finding;
    if (!fix.shows_symptom) {
      finding.counter_evidence.push_back(
          "replayed from an empty allocator the symptom does not show: what came before the window took part");
      return;
    }
    finding.counter_evidence.push_back(
        absl::StrCat("replayed ", fix.is_setting ? "under " : "", fix.change, " the symptom stays"));
    finding.confidence = Confidence::kPossible;
    // Nothing but the replay speaks for this one.
    const bool is_lower =
        fix.after.ooms < fix.before.ooms || fix.after.peak_reserved_bytes < fix.before.peak_reserved_bytes;
    if (finding.kind == CauseKind::kNotExpandable && !is_lower) finding.finding = analyses::Finding::kAbsent;
  }

  const std::optional<RequestPlaces>& Places() {
    if (!has_places_) places_ = PlaceRequests(*history_.timeline, *requests_.as_recorded);
    has_places_ = true;
    return places_;
  }

  std::optional<std::vector<std::uint32_t>> IdsOf(const CauseFinding& finding) {
    if (finding.blocks.empty() || !Places().has_value()) return std::nullopt;
    return Places()->IdsOf(finding.blocks);
  }

  const CauseHistory& history_;
  const RecordedRequests& requests_;
  const WhatIfSettings& settings_;
  std::optional<WhatIfRow> baseline_;
  std::optional<RequestPlaces> places_;
  bool has_places_ = false;
};

// As SortCauses does; the fixes follow their findings.
std::vector<TestedCause> Sorted(std::vector<TestedCause> tested) {
  std::vector<CauseFinding> order;
  for (const TestedCause& cause : tested) order.push_back(cause.finding);
  analyses::SortCauses(order);
  std::vector<TestedCause> out;
  for (const CauseFinding& finding : order) {
    const auto same = std::find_if(tested.begin(), tested.end(),
                                   [&finding](const TestedCause& cause) { return cause.finding.kind == finding.kind; });
    out.push_back(std::move(*same));
  }
  return out;
}

}  // namespace

absl::StatusOr<std::vector<TestedCause>> TestFixes(const std::vector<CauseFinding>& findings,
                                                   const CauseContext& context, const RecordedRequests& requests,
                                                   const WhatIfSettings& settings, const Progress& progress) {
  const auto is_tested = [&requests](const CauseFinding& finding) {
    return finding.finding == analyses::Finding::kFound && requests.as_recorded != nullptr;
  };
  const auto all = std::count_if(findings.begin(), findings.end(), is_tested);
  std::int64_t number = 0;
  FixTester tester(*context.history, requests, settings);
  std::vector<TestedCause> tested;
  for (const CauseFinding& finding : findings) {
    if (!is_tested(finding)) {
      tested.push_back({finding});
      continue;
    }
    if (progress) progress(absl::StrCat("testing causes, ", ++number, " of ", all));
    absl::StatusOr<TestedCause> cause = tester.Test(finding);
    if (!cause.ok()) return cause.status();
    tested.push_back(*std::move(cause));
  }
  return Sorted(std::move(tested));
}

}  // namespace ashlar::whatif
