#include "commands/explain/verdict.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "allocator/base/units.h"
#include "allocator/core/oom_report.h"
#include "allocator/policy/size_rule.h"
#include "analyzer/analyses/state/state_accounting.h"
#include "commands/explain/failure.h"
#include "commands/shared/traced_run.h"

namespace ashlar::answers {
namespace {

using whatif::WhatIfRow;

// Of what is live.
constexpr double kLeastLeakShare = 0.25;
constexpr double kLeastShareBesideHoles = 0.10;

constexpr char kNotReproduced[] =
    "replayed from an empty allocator the recorded settings do not fail, so nothing is promised for others: record the "
    "run from its start";

constexpr char kRaiseTheLimit[] =
    "raise the limit that stopped it: torch.cuda.set_per_process_memory_fraction(1.0), or per_process_memory_fraction "
    "in the settings; no setting here is known to carry the run through under it";

constexpr char kProgramComesFirst[] =
    "nearly full: no setting is known to carry the run on, and what to change first lies in the program";

OomVerdict VerdictOf(core::OomKind kind) {
  switch (kind) {
    case core::OomKind::kCapacity:
      return OomVerdict::kCapacity;
    case core::OomKind::kNearlyFull:
      return OomVerdict::kNearlyFull;
    case core::OomKind::kFragmentation:
      return OomVerdict::kFragmentation;
    case core::OomKind::kOutside:
      return OomVerdict::kOutside;
    case core::OomKind::kLimit:
      return OomVerdict::kLimit;
  }
  return OomVerdict::kUnknown;
}

Verdict OfFailure(const analyses::CauseHistory& history, const OomAccounting& accounting) {
  const trace::Event& event = history.timeline->events()[static_cast<std::size_t>(history.moment)];
  const std::uint64_t rounded = event.size_bytes;
  const std::uint64_t largest =
      analyses::LargestFreeBytes(history.state, event.stream, policy::IsSmall(rounded), event.pool.value_or(PoolId{}));
  const core::OomFigures figures = FiguresOfFailure(history, accounting);
  const core::OomJudgement judgement = core::JudgeOom(figures);
  return {.headline = absl::StrCat("OUT OF MEMORY  device ", history.timeline->device(), ", event ",
                                   FormatCount(history.moment), " of the recording: ", FormatBytes(rounded),
                                   " requested, the largest free block it could use is ", FormatBytes(largest)),
          .kind = VerdictOf(judgement.kind),
          .evidence = core::OomSentences(judgement, figures)};
}

Verdict OfRun(const timeline::Timeline& timeline) {
  if (!timeline.HasAllocations()) {
    return {.headline = absl::StrCat("NO HISTORY RECORDED  device ", timeline.device(), ": ", kOneState),
            .evidence = {"unknown: whether a request failed is not in this file"}};
  }
  return {.headline = absl::StrCat("NO FAILURE  device ", timeline.device(), ": no request ran out of memory in ",
                                   FormatCount(static_cast<std::uint64_t>(timeline.event_count())), " events"),
          .kind = OomVerdict::kHealthy,
          .evidence = {absl::StrCat("healthy: peak allocated ", FormatBytes(timeline.allocated_peak().bytes), " of ",
                                    FormatBytes(timeline.reserved_peak().bytes), " peak reserved")}};
}

}  // namespace

Verdict FirstVerdict(const analyses::CauseHistory& history, const OomAccounting& accounting) {
  return HasFailure(history) ? OfFailure(history, accounting) : OfRun(*history.timeline);
}

namespace {

// --- what the rules ask ---

bool IsKind(const VerdictCase& of, std::initializer_list<OomVerdict> kinds) {
  return std::find(kinds.begin(), kinds.end(), of.first.kind) != kinds.end();
}

std::uint64_t LiveBytes(const VerdictCase& of) {
  return of.accounting.live_bytes.value_or(of.accounting.allocated_bytes.value_or(0));
}

// In the cache and in use by nobody.
std::uint64_t HoleBytes(const VerdictCase& of) {
  const std::uint64_t reserved = of.accounting.reserved_bytes.value_or(0);
  return reserved - std::min(reserved, of.accounting.allocated_bytes.value_or(reserved));
}

// To the end of the projected steps, with nothing left behind: what piled up has an end.
bool DoesGrowthEnd(const VerdictCase& of) {
  const std::vector<WhatIfRow>& rows = of.what_ifs.rows;
  return std::any_of(rows.begin(), rows.end(), [](const WhatIfRow& row) {
    return row.is_cut_off && row.CarriesThrough() && row.projected->growth_bytes_per_step == 0;
  });
}

bool IsLeak(const VerdictCase& of) {
  if (!of.growing.has_value() || of.growing->bytes == 0 || of.growing->bytes_per_step == 0) return false;
  const double share =
      static_cast<double>(of.growing->bytes) / static_cast<double>(std::max<std::uint64_t>(LiveBytes(of), 1));
  const bool is_much =
      share >= kLeastLeakShare || (share >= kLeastShareBesideHoles && of.growing->bytes > HoleBytes(of));
  return is_much && !DoesGrowthEnd(of);
}

const WhatIfRow* LowestThatGetsPast(const VerdictCase& of) {
  const WhatIfRow* out = nullptr;
  for (const WhatIfRow& row : of.what_ifs.rows) {
    if (!row.is_baseline && row.ServesAllRecorded() &&
        (out == nullptr || row.peak_reserved_bytes < out->peak_reserved_bytes))
      out = &row;
  }
  return out;
}

bool GetsPast(const WhatIfRow& row) { return row.is_cut_off && row.ServesAllRecorded(); }

// A row of the table, or our own allocator's, that gets past the request, whatever comes after it.
bool DoesAnyGetPast(const WhatIfs& what_ifs) {
  return std::any_of(what_ifs.rows.begin(), what_ifs.rows.end(), GetsPast) ||
         (what_ifs.own.has_value() && GetsPast(what_ifs.own->row));
}

bool HasBaselineThatFits(const VerdictCase& of) {
  return std::any_of(of.what_ifs.rows.begin(), of.what_ifs.rows.end(),
                     [](const WhatIfRow& row) { return row.is_baseline && GetsPast(row); });
}

bool OwnRuns(const VerdictCase& of) { return of.what_ifs.own.has_value() && of.what_ifs.own->run.has_value(); }

bool IsAdvised(const VerdictCase& of) { return of.what_ifs.advice.paste.has_value(); }

bool IsShort(const whatif::ProjectedPart& next) {
  return static_cast<double>(next.needed_bytes) >
         (1 - core::kNearlyFullShare) * static_cast<double>(next.available_bytes);
}

// The row that gets furthest, where each that gets past the request fails in its projected part, and even this one for
// want of memory and not of a hole that is to be felt; nullptr otherwise.
const WhatIfRow* ShortLater(const VerdictCase& of) {
  const WhatIfRow* out = nullptr;
  for (const WhatIfRow& row : of.what_ifs.rows) {
    if (!row.ServesAllRecorded()) continue;
    if (!row.projected.has_value() || row.projected->ooms == 0 || row.projected->is_extrapolated) return nullptr;
    if (out == nullptr || row.projected->failed_after > out->projected->failed_after) out = &row;
  }
  return out != nullptr && IsShort(*out->projected) ? out : nullptr;
}

bool EndsWhenRunAgain(const VerdictCase& of) {
  return of.what_ifs.run_again.has_value() && of.what_ifs.run_again->ends;
}
bool FailsWhenRunAgain(const VerdictCase& of) {
  return of.what_ifs.run_again.has_value() && !of.what_ifs.run_again->ends;
}

// --- what they say ---

std::string RunAgainUnder(const SettingRun& run) {
  return absl::StrCat("run again under ", whatif::NameOf(run.conf), ", the program ",
                      run.ends ? "ends" : "runs out of memory as well");
}

std::string LeakSentence(const GrowingBytes& growing) {
  return absl::StrCat("leak: ", FormatBytes(growing.bytes), " were left behind by earlier steps, about ",
                      FormatBytes(growing.bytes_per_step), " a step, and no allocator setting ends that");
}

std::string LeakAdvice(const VerdictCase& of) {
  std::string out = "no setting cures a leak";
  if (FailsWhenRunAgain(of)) return absl::StrCat(out, ": ", RunAgainUnder(*of.what_ifs.run_again));
  const WhatIfRow* row = LowestThatGetsPast(of);
  if (row == nullptr) return out;
  absl::StrAppend(&out, ": ", whatif::NameOf(row->conf), " gets past this request");
  if (!row->projected.has_value()) return absl::StrCat(out, ", and how long it lasts is not known");
  const whatif::ProjectedPart& next = *row->projected;
  const std::string growth = absl::StrCat(", +", FormatBytes(of.growing->bytes_per_step), " a step");
  if (next.ooms == 0) return absl::StrCat(out, "; ", FormatCount(next.requests), " requests more fit", growth);
  return absl::StrCat(out, " and fails ",
                      next.failed_steps_later == 0
                          ? std::string("in the same step")
                          : absl::StrCat("about ", FormatCount(next.failed_steps_later),
                                         next.failed_steps_later == 1 ? " step later" : " steps later"),
                      " (projected)", growth);
}

bool IsOver(const WhatIfRow& row) { return row.projected->needed_bytes > row.projected->available_bytes; }

// Where the request itself has room, that is said beside.
std::string ShortLaterSentence(const VerdictCase& of, const WhatIfRow& row) {
  const bool fits = of.headroom.has_value() && of.headroom->value_bytes >= 0;
  return absl::StrCat(IsOver(row) ? "capacity" : "nearly full", ": ",
                      fits ? "without holes this request would fit, but not those that follow it: they need "
                           : "the requests that follow this one need ",
                      FormatBytes(row.projected->needed_bytes), " where the allocator can hold ",
                      FormatBytes(row.projected->available_bytes),
                      " (projected), so no allocator setting carries the run through");
}

Ruling Nothing(const VerdictCase&) { return {}; }

// Of the device at most: a run whose peak is no more has room, whatever a setting would save of it.
constexpr double kRoomyShare = 0.6;

std::optional<std::uint64_t> DeviceBytes(const VerdictCase& of) {
  return of.device_bytes.has_value() ? of.device_bytes : of.accounting.total_bytes;
}

// The baseline's peak with what lies outside; nullopt: not known, or more than that.
std::optional<std::uint64_t> PeakWithRoom(const VerdictCase& of) {
  const std::optional<std::uint64_t> device = DeviceBytes(of);
  if (of.what_ifs.rows.empty() || !device.has_value()) return std::nullopt;
  const std::uint64_t peak = of.what_ifs.rows.front().peak_reserved_bytes + of.accounting.outside_bytes.value_or(0);
  return static_cast<double>(peak) <= kRoomyShare * static_cast<double>(*device) ? std::optional(peak) : std::nullopt;
}

constexpr VerdictRule kRules[] = {
    {"room_to_spare",
     [](const VerdictCase& of) {
       return IsKind(of, {OomVerdict::kHealthy}) && of.what_ifs.advice.paste.has_value() &&
              of.what_ifs.advice.choice.kind == whatif::ChoiceKind::kLowersPeak && PeakWithRoom(of).has_value();
     },
     [](const VerdictCase& of) -> Ruling {
       const WhatIfRow& row = of.what_ifs.rows[of.what_ifs.advice.choice.row];
       return {.withheld =
                   absl::StrCat("nothing needs a change: the peak is ", FormatBytes(*PeakWithRoom(of)), " of the ",
                                FormatBytes(*DeviceBytes(of)), " of the device; ", whatif::NameOf(row.conf),
                                " would lower the reserved peak to ", FormatBytes(row.peak_reserved_bytes))};
     }},
    {"no_failure", [](const VerdictCase& of) { return IsKind(of, {OomVerdict::kHealthy, OomVerdict::kUnknown}); },
     Nothing},
    // The program itself has the last word, where it was run again.
    {"run_again_and_ends", EndsWhenRunAgain,
     [](const VerdictCase& of) -> Ruling {
       return {OomVerdict::kFragmentation, absl::StrCat("fragmentation: ", RunAgainUnder(*of.what_ifs.run_again))};
     }},
    // Each step leaves memory behind: a quarter of what is live, or a tenth and more than the holes; but not where a
    // setting carries the run on without that.
    {"leak", IsLeak,
     [](const VerdictCase& of) -> Ruling { return {OomVerdict::kLeak, LeakSentence(*of.growing), LeakAdvice(of)}; }},
    {"limit_to_raise",
     [](const VerdictCase& of) { return IsKind(of, {OomVerdict::kLimit}) && !IsAdvised(of) && !OwnRuns(of); },
     [](const VerdictCase&) -> Ruling { return {.withheld = kRaiseTheLimit}; }},
    {"not_of_this_allocator",
     [](const VerdictCase& of) { return IsKind(of, {OomVerdict::kLimit, OomVerdict::kOutside}); }, Nothing},
    {"optimizer_state_to_come",
     [](const VerdictCase& of) {
       return of.headroom.has_value() && Signed(of.to_come_bytes) > std::max<std::int64_t>(of.headroom->value_bytes, 0);
     },
     [](const VerdictCase& of) -> Ruling {
       return {OomVerdict::kCapacity,
               absl::StrCat("capacity: the optimizer's first step has ", FormatBytes(of.to_come_bytes),
                            " of its state still to make, so no allocator setting carries the run through"),
               "no setting makes room for the optimizer's state"};
     }},
    // The setting that gets furthest past the request fails again for want of memory, holes or none.
    {"short_later", [](const VerdictCase& of) { return ShortLater(of) != nullptr; },
     [](const VerdictCase& of) -> Ruling {
       const WhatIfRow& row = *ShortLater(of);
       return {IsOver(row) ? OomVerdict::kCapacity : OomVerdict::kNearlyFull, ShortLaterSentence(of, row)};
     }},
    {"run_again_and_fails", [](const VerdictCase& of) { return FailsWhenRunAgain(of) && !OwnRuns(of); },
     [](const VerdictCase& of) -> Ruling {
       const std::string again = RunAgainUnder(*of.what_ifs.run_again);
       return {OomVerdict::kCapacity, absl::StrCat("capacity: ", again), again};
     }},
    {"not_reproduced", HasBaselineThatFits, [](const VerdictCase&) -> Ruling { return {.withheld = kNotReproduced}; }},
    // A setting carries the run through to the end of the step.
    {"setting_carries_through",
     [](const VerdictCase& of) { return IsAdvised(of) && !IsKind(of, {OomVerdict::kFragmentation}); },
     [](const VerdictCase& of) -> Ruling {
       const WhatIfRow& row = of.what_ifs.rows[of.what_ifs.advice.choice.row];
       return {OomVerdict::kFragmentation, absl::StrCat("fragmentation: ", whatif::NameOf(row.conf),
                                                        " carries the run through the step that failed")};
     }},
    {"own_allocator_carries_through",
     [](const VerdictCase& of) { return OwnRuns(of) && !IsKind(of, {OomVerdict::kFragmentation}); },
     [](const VerdictCase&) -> Ruling {
       return {OomVerdict::kFragmentation,
               "fragmentation: Ashlar's own allocator carries the run through the step that failed"};
     }},
    // The request is said not to fit, and a replay found room for it.
    {"just_gets_past",
     [](const VerdictCase& of) {
       return IsKind(of, {OomVerdict::kCapacity, OomVerdict::kNearlyFull}) && LowestThatGetsPast(of) != nullptr;
     },
     [](const VerdictCase& of) -> Ruling {
       return {OomVerdict::kNearlyFull, absl::StrCat("nearly full: ", whatif::NameOf(LowestThatGetsPast(of)->conf),
                                                     " just gets past this request")};
     }},
    // That the request fits without holes is arithmetic. That holes are what is wrong is shown by a setting that
    // carries the run on, or by a cause that lies in them.
    {"program_comes_first",
     [](const VerdictCase& of) {
       return IsKind(of, {OomVerdict::kFragmentation}) && !IsAdvised(of) && !OwnRuns(of) && of.is_program_first;
     },
     [](const VerdictCase&) -> Ruling { return {OomVerdict::kNearlyFull, kProgramComesFirst}; }},
    {"first_stays", [](const VerdictCase&) { return true; }, Nothing},
};

// The first verdict's figures stay as a second sentence, without its name.
std::vector<std::string> OverruledEvidence(std::string sentence, const std::optional<ByteSpan>& headroom) {
  std::vector<std::string> out = {std::move(sentence)};
  if (!headroom.has_value()) return out;
  const std::int64_t bytes = headroom->value_bytes;
  out.push_back(absl::StrCat(core::kWithoutHoles, " this request alone ",
                             bytes >= 0 ? "would fit with " : "would be short by ",
                             FormatSignedBytes(bytes >= 0 ? bytes : -bytes), bytes >= 0 ? " to spare" : ""));
  return out;
}

// The first verdict's claims are of the failed request alone.
std::vector<std::string> WithoutClaims(std::vector<std::string> evidence) {
  for (std::string& sentence : evidence) {
    absl::string_view rest = sentence;
    for (const char* const claim : {core::kNoSettingHelps, core::kNonePacksAsWell}) {
      if (absl::ConsumeSuffix(&rest, claim)) sentence = std::string(rest);
    }
  }
  return evidence;
}

}  // namespace

absl::Span<const VerdictRule> VerdictRules() { return kRules; }

LastWord LastWordOn(const VerdictCase& of) {
  const VerdictRule& rule =
      *std::find_if(std::begin(kRules), std::end(kRules), [&of](const VerdictRule& asked) { return asked.holds(of); });
  Ruling ruling = rule.says(of);
  LastWord out{rule.name, of.first, std::move(ruling.withheld)};
  if (ruling.kind.has_value()) {
    out.verdict.kind = *ruling.kind;
    out.verdict.evidence = OverruledEvidence(std::move(ruling.sentence), of.headroom);
  } else if (DoesAnyGetPast(of.what_ifs)) {
    out.verdict.evidence = WithoutClaims(std::move(out.verdict.evidence));
  }
  return out;
}

}  // namespace ashlar::answers
