#include "analyzer/whatif/advice.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "allocator/base/units.h"
#include "analyzer/whatif/settings_space.h"

namespace ashlar::whatif {
namespace {

constexpr double kAnyShare = -1e300;  // whatever its peak

bool IsBad(const Score& score) { return score.risk == RiskLevel::kNotRecommended; }

// A note is no reason to rank lower.
int CountedAs(RiskLevel level) { return level < RiskLevel::kCaution ? 0 : static_cast<int>(level); }

auto RankKey(const Score& s) {
  return std::tuple(s.failing_traces, s.ooms, s.open_traces, IsBad(s), s.regret, s.cost_ns, s.driver_calls,
                    CountedAs(s.risk), s.keys, absl::string_view(s.conf));
}

// Between settings of about the same peak and price.
auto SimplicityKey(const Score& s) {
  return std::tuple(s.keys, s.regret, s.cost_ns, s.driver_calls, absl::string_view(s.conf));
}

bool NoWorse(const Score& a, const Score& b) {
  return std::tie(a.failing_traces, a.ooms) <= std::tie(b.failing_traces, b.ooms) && a.regret <= b.regret &&
         a.cost_ns <= b.cost_ns && CountedAs(a.risk) <= CountedAs(b.risk);
}

double SavedShare(const Score& score, const Score& baseline) { return 1 - (1 + score.regret) / (1 + baseline.regret); }

// The positions whose `value` is at most `slack` of the least.
template <typename Value, typename Slack>
std::vector<std::size_t> Lowest(const std::vector<Score>& scores, const std::vector<std::size_t>& positions,
                                Value value, Slack slack) {
  std::vector<std::size_t> out;
  if (positions.empty()) return out;
  const auto less = [&](std::size_t a, std::size_t b) { return value(scores[a]) < value(scores[b]); };
  const auto limit = slack(value(scores[*std::min_element(positions.begin(), positions.end(), less)]));
  std::copy_if(positions.begin(), positions.end(), std::back_inserter(out),
               [&](std::size_t i) { return value(scores[i]) <= limit; });
  return out;
}

// Of the settings under which all fits and that are at least `saved_share` below the baseline: the one to advise, by
// the rule in advice.h. nullopt where there is none.
std::optional<std::size_t> Best(const std::vector<Score>& scores, std::size_t baseline, double saved_share) {
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const Score& score = scores[i];
    if (score.failing_traces > 0 || IsBad(score) || SavedShare(score, scores[baseline]) < saved_share) continue;
    left.push_back(i);
  }
  left =
      Lowest(scores, left, [](const Score& s) { return 1 + s.regret; }, [](double x) { return x * (1 + kAlikeShare); });
  left = Lowest(scores, left, [](const Score& s) { return CountedAs(s.risk); }, [](int x) { return x; });
  left = Lowest(
      scores, left, [](const Score& s) { return s.cost_ns; }, [](std::uint64_t x) { return x + kWorthwhileStallNs; });
  if (left.empty()) return std::nullopt;
  return *std::min_element(left.begin(), left.end(), [&](std::size_t a, std::size_t b) {
    return SimplicityKey(scores[a]) < SimplicityKey(scores[b]);
  });
}

// The best of those for which `is_out` is false.
template <typename IsOut>
std::optional<std::size_t> BestWithout(std::vector<Score> scores, std::size_t baseline, double saved_share,
                                       IsOut is_out) {
  for (Score& score : scores) score.failing_traces += is_out(score) ? 1 : 0;
  return Best(scores, baseline, saved_share);
}

}  // namespace

bool RanksBefore(const Score& a, const Score& b) { return RankKey(a) < RankKey(b); }

std::vector<bool> ParetoBest(const std::vector<Score>& scores) {
  std::vector<bool> out(scores.size(), true);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    for (std::size_t j = 0; j < scores.size() && out[i]; ++j) {
      if (i == j || !NoWorse(scores[j], scores[i])) continue;
      if (!NoWorse(scores[i], scores[j]) || RanksBefore(scores[j], scores[i])) out[i] = false;
    }
  }
  return out;
}

bool IsWorthAChange(ChoiceKind kind) {
  return kind == ChoiceKind::kFits || kind == ChoiceKind::kLowersPeak || kind == ChoiceKind::kCuresRetries;
}

Choice Choose(const std::vector<Score>& scores, std::size_t baseline) {
  const Score& recorded = scores[baseline];
  const auto choice = [&](ChoiceKind kind, std::size_t row) {
    return Choice{kind, row, SavedShare(scores[row], recorded)};
  };
  if (recorded.failing_traces > 0) {
    const auto is_open = [](const Score& score) { return score.open_traces > 0; };
    if (const auto best = BestWithout(scores, baseline, kAnyShare, is_open)) return choice(ChoiceKind::kFits, *best);
    if (const auto best = Best(scores, baseline, kAnyShare)) return choice(ChoiceKind::kGetsPast, *best);
    const auto closest = std::min_element(scores.begin(), scores.end(), RanksBefore);
    return choice(ChoiceKind::kNothingFits, static_cast<std::size_t>(closest - scores.begin()));
  }
  const auto other = [&](const std::optional<std::size_t>& best) { return best.has_value() && *best != baseline; };
  const auto worthwhile = Best(scores, baseline, kWorthwhileShare);
  if (other(worthwhile)) return choice(ChoiceKind::kLowersPeak, *worthwhile);
  const auto retries = [](const Score& score) { return score.retries > 0; };
  const auto calm = BestWithout(scores, baseline, -kAlikeShare, retries);
  if (recorded.retries > 0 && calm.has_value()) return choice(ChoiceKind::kCuresRetries, *calm);
  const auto named = Best(scores, baseline, kNamedShare);
  if (other(named)) return choice(ChoiceKind::kNamed, *named);
  return choice(ChoiceKind::kKeep, baseline);
}

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
      if (row.projected.has_value() && row.projected->is_rising) {
        return absl::StrCat(NameOf(row.conf),
                            " gets past this request; each step asked for more than the one before, "
                            "so that a later one may fail: nothing is promised");
      }
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

}  // namespace ashlar::whatif
