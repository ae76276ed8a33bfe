#include "analyzer/remedies/advice.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "analyzer/remedies/settings_space.h"

namespace ashlar::remedies {
namespace {

std::string NothingFits(const WhatIfRow& closest, const WhatIfRow& baseline, const std::string& settings) {
  if (closest.ServesAllRecorded() && closest.projected.has_value()) {
    const ProjectedPart& next = *closest.projected;
    return absl::StrCat(
        "none of ", settings, " carries the run through; ", NameOf(closest.conf),
        " gets past this request, then fails again ", FormatCount(next.failed_after),
        next.failed_after == 1 ? " request later: " : " requests later: ", FormatBytes(next.needed_bytes),
        " needed of ", FormatBytes(next.available_bytes), " (projected)");
  }
  std::string out = absl::StrCat("none of ", settings, " would have made it fit");
  if (closest.ooms < baseline.ooms) {
    absl::StrAppend(&out, "; ", NameOf(closest.conf), " comes closest (", FormatCount(closest.ooms),
                    " failed requests, not ", FormatCount(baseline.ooms), ")");
  }
  return out;
}

std::string Keep(const WhatIfRow& baseline, const std::string& settings) {
  std::string out = absl::StrCat("nothing to change: none of ", settings, " lowers the peak of reserved memory by 5 %");
  if (WorstLevel(baseline.risks) == RiskLevel::kNotRecommended) {
    absl::StrAppend(&out, "; yet ", NameOf(baseline.conf), " is not recommended: ", CautionsOf(baseline.risks));
  }
  return out;
}

// Of the rows that fit and may be advised, else of those that may be advised, else of all; 0: nothing was reserved.
std::uint64_t LowestPeak(absl::Span<const absl::Span<const WhatIfRow>> settings, std::size_t trace) {
  for (int pass = 0; pass < 3; ++pass) {
    std::optional<std::uint64_t> lowest;
    for (const absl::Span<const WhatIfRow> rows : settings) {
      const WhatIfRow& row = rows[trace];
      if (pass < 1 && row.ooms > 0) continue;
      if (pass < 2 && WorstLevel(row.risks) == RiskLevel::kNotRecommended) continue;
      lowest = std::min(lowest.value_or(row.peak_reserved_bytes), row.peak_reserved_bytes);
    }
    if (lowest.has_value()) return *lowest;
  }
  return 0;
}

void AddTrace(const WhatIfRow& row, std::uint64_t lowest, bool is_first, Score& score) {
  const double peak = static_cast<double>(row.peak_reserved_bytes);
  const double regret = lowest == 0 ? 0 : peak / static_cast<double>(lowest) - 1;
  score.regret = is_first ? regret : std::max(score.regret, regret);
  const std::uint64_t later = row.projected.has_value() ? row.projected->ooms : 0;
  score.failing_traces += row.ooms + later > 0 ? 1 : 0;
  score.open_traces += row.ooms == 0 && later == 0 && !row.CarriesThrough() ? 1 : 0;
  score.ooms += row.ooms + later;
  score.retries += row.retries;
  score.cost_ns += row.cost_ns;
  score.driver_calls += row.driver_calls;
  score.risk = std::max(score.risk, WorstLevel(row.risks));
  score.keys = std::max(score.keys, KeyCount(row.conf));
  score.conf = row.conf;
}

std::string SavedText(const WhatIfRow& row, const WhatIfRow& baseline, double saved_share) {
  return absl::StrFormat("%s (%.1f %%)", FormatBytes(baseline.peak_reserved_bytes - row.peak_reserved_bytes),
                         saved_share * 100);
}

// What the choice does, without its price.
std::string SentenceOf(const Choice& choice, const WhatIfRow& row, const WhatIfRow& baseline,
                       const std::string& settings) {
  switch (choice.kind) {
    case ChoiceKind::kNothingFits:
      return NothingFits(row, baseline, settings);
    case ChoiceKind::kKeep:
      return Keep(baseline, settings);
    case ChoiceKind::kFits:
      if (row.is_cut_off && row.projected.has_value()) {
        return absl::StrCat(NameOf(row.conf), " would have fitted to the end of the step: peak ",
                            FormatBytes(row.projected->peak_reserved_bytes), " (projected)");
      }
      return absl::StrCat(NameOf(row.conf), " would have fitted: peak reserved ", FormatBytes(row.peak_reserved_bytes),
                          ", no request fails");
    case ChoiceKind::kGetsPast:
      if (row.projected.has_value()) {
        return absl::StrCat(NameOf(row.conf), " gets past this request and would reach the end of the step with ",
                            FormatBytes(row.projected->peak_reserved_bytes), " of ",
                            FormatBytes(row.projected->available_bytes),
                            " (projected): too little to spare for a promise");
      }
      return absl::StrCat(NameOf(row.conf), " gets past this request; beyond it nothing is known, so nothing is ",
                          "promised: record a whole step before the failure");
    case ChoiceKind::kLowersPeak:
      return absl::StrCat(NameOf(row.conf), " lowers the peak of reserved memory by ",
                          SavedText(row, baseline, choice.saved_share));
    case ChoiceKind::kCuresRetries:
      return absl::StrCat(NameOf(row.conf), " needs about the same memory and takes the ",
                          FormatCount(baseline.retries),
                          " retries away, in which the whole cache is returned and obtained again");
    case ChoiceKind::kNamed:
      return absl::StrCat("nothing to change: ", NameOf(row.conf), " would lower the peak of reserved memory by ",
                          SavedText(row, baseline, choice.saved_share), ", which a change is hardly worth");
  }
  return "";
}

}  // namespace

std::string PasteLine(const std::string& conf) {
  if (conf.empty()) return "unset PYTORCH_CUDA_ALLOC_CONF";
  // Our own keys are read from our own variable.
  bool has_ours = false;
  for (const policy::KeyInfo& key : policy::AllKeys()) {
    has_ours |= key.is_ours && absl::StrContains(absl::StrCat(",", conf), absl::StrCat(",", key.name, ":"));
  }
  return absl::StrCat(has_ours ? "export ASHLAR_CONF=" : "export PYTORCH_CUDA_ALLOC_CONF=", conf);
}

std::string NameOf(const std::string& conf) { return conf.empty() ? "the default settings" : conf; }

std::string CautionsOf(const std::vector<Risk>& risks) {
  std::string out;
  for (const Risk& risk : risks) {
    if (risk.level < RiskLevel::kCaution) continue;
    absl::StrAppend(&out, out.empty() ? "" : "; ", risk.sentence, " (", risk.source, ")");
  }
  return out;
}

std::vector<Score> ScoresOf(absl::Span<const absl::Span<const WhatIfRow>> settings) {
  std::vector<Score> out(settings.size());
  const std::size_t traces = settings.empty() ? 0 : settings.front().size();
  for (std::size_t trace = 0; trace < traces; ++trace) {
    const std::uint64_t lowest = LowestPeak(settings, trace);
    for (std::size_t i = 0; i < settings.size(); ++i) AddTrace(settings[i][trace], lowest, trace == 0, out[i]);
  }
  return out;
}

Advice Advise(const std::vector<WhatIfRow>& rows, const std::string& settings) {
  if (rows.empty()) return {};
  const auto is_baseline = [](const WhatIfRow& row) { return row.is_baseline; };
  const auto recorded = std::find_if(rows.begin(), rows.end(), is_baseline);
  const std::size_t position = recorded == rows.end() ? 0 : static_cast<std::size_t>(recorded - rows.begin());
  const WhatIfRow& baseline = rows[position];
  std::vector<absl::Span<const WhatIfRow>> columns;
  for (const WhatIfRow& row : rows) columns.push_back(absl::MakeConstSpan(&row, 1));
  const Choice choice = Choose(ScoresOf(columns), position);
  const WhatIfRow& row = rows[choice.row];
  Advice out{.sentence = SentenceOf(choice, row, baseline, settings), .choice = choice};
  if (!IsWorthAChange(choice.kind)) return out;
  out.paste = PasteLine(row.conf);
  const std::string cautions = CautionsOf(row.risks);
  if (!cautions.empty()) absl::StrAppend(&out.sentence, "; its price: ", cautions);
  return out;
}

void WithholdUnproven(const std::string& where, Advice& advice) {
  if (!advice.paste.has_value()) return;
  advice.paste.reset();
  advice.sentence = absl::StrCat("nothing to paste: the replay of the recorded settings does not follow the record",
                                 where.empty() ? "" : " ", where, ", so this is not proven: ", advice.sentence);
}

}  // namespace ashlar::remedies
