#include "commands/explain/verdict.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "allocator/base/units.h"
#include "allocator/core/oom_report.h"

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

bool IsFailure(OomVerdict verdict) { return verdict != OomVerdict::kHealthy && verdict != OomVerdict::kUnknown; }

// The first verdict's figures stay as a second sentence, without its name.
void Overrule(OomVerdict verdict, std::string sentence, Explanation& out) {
  out.verdict = verdict;
  std::vector<std::string> evidence = {std::move(sentence)};
  if (out.headroom.has_value()) {
    const std::int64_t headroom = out.headroom->value_bytes;
    evidence.push_back(
        absl::StrCat("without any holes this one request ", headroom >= 0 ? "would fit with " : "would be short by ",
                     FormatSignedBytes(headroom >= 0 ? headroom : -headroom), headroom >= 0 ? " to spare" : ""));
  }
  out.evidence = std::move(evidence);
}

void Withhold(std::string sentence, Explanation& out) {
  out.advice.paste.reset();
  out.own.reset();
  out.advice.sentence = std::move(sentence);
}

std::uint64_t LiveBytes(const Explanation& e) {
  return e.accounting.live_bytes.value_or(e.accounting.allocated_bytes.value_or(0));
}

// In the cache and in use by nobody.
std::uint64_t HoleBytes(const Explanation& e) {
  const std::uint64_t reserved = e.accounting.reserved_bytes.value_or(0);
  return reserved - std::min(reserved, e.accounting.allocated_bytes.value_or(reserved));
}

bool IsLeak(const GrowingBytes& growing, const Explanation& e) {
  if (growing.bytes == 0 || growing.bytes_per_step == 0) return false;
  const double share =
      static_cast<double>(growing.bytes) / static_cast<double>(std::max<std::uint64_t>(LiveBytes(e), 1));
  return share >= kLeastLeakShare || (share >= kLeastShareBesideHoles && growing.bytes > HoleBytes(e));
}

const WhatIfRow* LowestThatGetsPast(const Explanation& e) {
  const WhatIfRow* out = nullptr;
  for (const WhatIfRow& row : e.what_if) {
    if (!row.is_baseline && row.ServesAllRecorded() &&
        (out == nullptr || row.peak_reserved_bytes < out->peak_reserved_bytes))
      out = &row;
  }
  return out;
}

// A row of the table, or our own allocator's, that gets past the request, whatever comes after it.
bool DoesAnyGetPast(const Explanation& e) {
  const auto gets_past = [](const WhatIfRow& row) { return row.is_cut_off && row.ServesAllRecorded(); };
  return std::any_of(e.what_if.begin(), e.what_if.end(), gets_past) || (e.own.has_value() && gets_past(e.own->row));
}

// The first verdict's claims are of the failed request alone.
void TakeBackClaims(Explanation& e) {
  for (std::string& sentence : e.evidence) {
    absl::string_view rest = sentence;
    for (const char* const claim : {core::kNoSettingHelps, core::kNonePacksAsWell}) {
      if (absl::ConsumeSuffix(&rest, claim)) sentence = std::string(rest);
    }
  }
}

// To the end of the projected steps, with nothing left behind: what piled up has an end.
bool DoesGrowthEnd(const Explanation& e) {
  return std::any_of(e.what_if.begin(), e.what_if.end(), [](const WhatIfRow& row) {
    return row.is_cut_off && row.CarriesThrough() && row.projected->growth_bytes_per_step == 0;
  });
}

std::string LeakSentence(const GrowingBytes& growing) {
  return absl::StrCat("leak: ", FormatBytes(growing.bytes), " were left behind by earlier steps, about ",
                      FormatBytes(growing.bytes_per_step), " a step, and no allocator setting ends that");
}

std::string LeakAdvice(const GrowingBytes& growing, const Explanation& e) {
  std::string out = "no setting cures a leak";
  const WhatIfRow* row = LowestThatGetsPast(e);
  if (row == nullptr) return out;
  absl::StrAppend(&out, ": ", whatif::NameOf(row->conf), " gets past this request");
  if (!row->projected.has_value()) return absl::StrCat(out, ", and how long it lasts is not known");
  const whatif::ProjectedPart& next = *row->projected;
  const std::string growth = absl::StrCat(", +", FormatBytes(growing.bytes_per_step), " a step");
  if (next.ooms == 0) return absl::StrCat(out, "; ", FormatCount(next.requests), " requests more fit", growth);
  return absl::StrCat(out, " and fails ",
                      next.failed_steps_later == 0
                          ? std::string("in the same step")
                          : absl::StrCat("about ", FormatCount(next.failed_steps_later),
                                         next.failed_steps_later == 1 ? " step later" : " steps later"),
                      " (projected)", growth);
}

bool OwnRuns(const Explanation& e) { return e.own.has_value() && e.own->run.has_value(); }

bool HasBaselineThatFits(const Explanation& e) {
  return std::any_of(e.what_if.begin(), e.what_if.end(),
                     [](const WhatIfRow& row) { return row.is_baseline && row.is_cut_off && row.ServesAllRecorded(); });
}

// The row that needs least in its projected part, where every row that gets past the request fails there for want of
// memory and not of a hole; nullptr otherwise.
const WhatIfRow* ShortLater(const Explanation& e) {
  const WhatIfRow* out = nullptr;
  for (const WhatIfRow& row : e.what_if) {
    if (!row.ServesAllRecorded()) continue;
    if (!row.projected.has_value() || row.projected->ooms == 0) return nullptr;
    if (row.projected->is_extrapolated) return nullptr;
    if (row.projected->needed_bytes <= row.projected->available_bytes) return nullptr;
    if (out == nullptr || row.projected->needed_bytes < out->projected->needed_bytes) out = &row;
  }
  return out;
}

// Of an optimizer in its first step: what the rest of the step will make.
std::uint64_t BytesToCome(const Explanation& e) {
  for (const ExplainedCause& cause : e.causes) {
    if (cause.finding.finding == analyses::Finding::kFound && cause.finding.to_come_bytes > 0) {
      return cause.finding.to_come_bytes;
    }
  }
  return 0;
}

}  // namespace

void SetLastVerdict(Explanation& e) {
  if (!IsFailure(e.verdict)) return;
  if (DoesAnyGetPast(e)) TakeBackClaims(e);
  if (e.growing.has_value() && IsLeak(*e.growing, e) && !DoesGrowthEnd(e)) {
    Overrule(OomVerdict::kLeak, LeakSentence(*e.growing), e);
    return Withhold(LeakAdvice(*e.growing, e), e);
  }
  if (e.verdict == OomVerdict::kLimit && !e.advice.paste.has_value() && !OwnRuns(e)) Withhold(kRaiseTheLimit, e);
  if (e.verdict == OomVerdict::kLimit || e.verdict == OomVerdict::kOutside) return;
  const std::uint64_t to_come = BytesToCome(e);
  if (e.headroom.has_value() && Signed(to_come) > std::max<std::int64_t>(e.headroom->value_bytes, 0)) {
    Overrule(OomVerdict::kCapacity,
             absl::StrCat("capacity: the optimizer's first step has ", FormatBytes(to_come),
                          " of its state still to make, so no allocator setting carries the run through"),
             e);
    return Withhold("no setting makes room for the optimizer's state", e);
  }
  if (const WhatIfRow* row = ShortLater(e); row != nullptr) {
    Overrule(OomVerdict::kCapacity,
             absl::StrCat("capacity: what comes next needs ", FormatBytes(row->projected->needed_bytes), " of ",
                          FormatBytes(row->projected->available_bytes),
                          " (projected), so no allocator setting carries the run through"),
             e);
    return;
  }
  if (HasBaselineThatFits(e)) return Withhold(kNotReproduced, e);
  if (e.advice.paste.has_value() && e.verdict != OomVerdict::kFragmentation) {
    const WhatIfRow& row = e.what_if[e.advice.choice.row];
    Overrule(OomVerdict::kFragmentation,
             absl::StrCat("fragmentation: ", whatif::NameOf(row.conf), " carries the run through the step that failed"),
             e);
    return;
  }
  if (OwnRuns(e) && e.verdict != OomVerdict::kFragmentation) {
    Overrule(OomVerdict::kFragmentation,
             "fragmentation: Ashlar's own allocator carries the run through the step that failed", e);
    return;
  }
  const WhatIfRow* fitting = LowestThatGetsPast(e);
  const bool is_full = e.verdict == OomVerdict::kCapacity || e.verdict == OomVerdict::kNearlyFull;
  if (is_full && fitting != nullptr) {
    Overrule(OomVerdict::kNearlyFull,
             absl::StrCat("nearly full: ", whatif::NameOf(fitting->conf), " just gets past this request"), e);
  }
}

}  // namespace ashlar::answers
