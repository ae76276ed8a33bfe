// The one line to paste, and why: the choice of the ranking, in words.
#ifndef ASHLAR_ANALYZER_WHATIF_ADVICE_H_
#define ASHLAR_ANALYZER_WHATIF_ADVICE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "analyzer/whatif/risk.h"
#include "analyzer/whatif/what_if.h"

namespace ashlar::whatif {

// Ranks settings: one order and one rule of choice for every command that gives advice.
//
// Order: settings under which fewer traces fail come first, then fewer failed requests, then settings that are not
// known to be bad (risk.h), then a lower peak of reserved memory, a lower estimated cost of the driver's calls, fewer
// calls, less risk, fewer keys, and last the conf's own text, so that no two are equal.
//
// Choice: never a setting known to be bad. Of the settings whose peak is within 1 % of the lowest the least risky are
// taken, of those the ones that cost at most 0.1 s more than the cheapest, of those the one with the fewest keys, then
// the lowest peak: a figure tuned to one trace is not worth a stall, nor a key.
//
// What is chosen is worth a change of the settings (IsWorthAChange) only where it takes a failure away, all the way to
// the end of the step that failed; where it takes retries away; or where it lowers the peak by 10 % or more. From 5 %
// on the gain is named, and nothing is to be changed for it. A setting that lets the failed request pass, and after
// which nothing is known, is named as that and no more.

inline constexpr double kAlikeShare = 0.01;
inline constexpr double kWorthwhileShare = 0.10;
inline constexpr double kNamedShare = 0.05;
inline constexpr std::uint64_t kWorthwhileStallNs = 100'000'000;

struct Score {
  std::size_t failing_traces = 0;  // where a request fails, one that is only projected among them
  std::size_t open_traces = 0;     // where none fails, and what comes after the recorded failure is not known
  std::uint64_t ooms = 0;
  std::uint64_t retries = 0;
  double regret = 0;  // of the peak against the lowest: 0.05 = 5 % above it; of several traces the worst
  std::uint64_t cost_ns = 0;
  std::uint64_t driver_calls = 0;
  RiskLevel risk = RiskLevel::kNone;
  std::size_t keys = 0;
  std::string conf;
};

bool RanksBefore(const Score& a, const Score& b);

// Those that no other is at least as good as in failures, peak, cost and risk, and better in one. Of several with the
// same figures only the first in rank.
std::vector<bool> ParetoBest(const std::vector<Score>& scores);

enum class ChoiceKind : std::uint8_t {
  kKeep,          // the recorded settings: no other is better by 5 %
  kFits,          // no request fails, as far as the step goes that failed
  kGetsPast,      // the failed request passes; what comes after it is not known
  kLowersPeak,    // by 10 % or more
  kCuresRetries,  // at about the same peak
  kNamed,         // lowers the peak by 5 to 10 %: not worth a change
  kNothingFits,
};

// Whether it is to be pasted.
bool IsWorthAChange(ChoiceKind kind);

struct Choice {
  ChoiceKind kind = ChoiceKind::kKeep;
  std::size_t row = 0;     // the setting to use; where nothing fits the one that comes closest
  double saved_share = 0;  // of the baseline's peak
};

// `baseline` is a position in `scores`, which is not empty.
Choice Choose(const std::vector<Score>& scores, std::size_t baseline);

struct Advice {
  std::optional<std::string> paste = {};  // the line for the shell; only what is worth a change
  std::string sentence = {};              // what it would do, or that nothing here helps
  Choice choice = {};                     // of the rows; no kind where there are none
};

// "export PYTORCH_CUDA_ALLOC_CONF=..."; for the defaults the line that takes a setting away.
std::string PasteLine(const std::string& conf);
// The conf, or "the default settings".
std::string NameOf(const std::string& conf);
// What speaks against a choice, as sentences to append; empty where nothing does.
std::string CautionsOf(const std::vector<Risk>& risks);

// One score a setting, each a row a trace, all in the same order of traces. A trace's regret is against the lowest peak
// of its rows that fit and are not known to be bad.
std::vector<Score> ScoresOf(absl::Span<const absl::Span<const WhatIfRow>> settings);

// Of one trace's rows. `settings` names the rows in the sentence: "these settings", "the 212 settings tried".
Advice Advise(const std::vector<WhatIfRow>& rows, const std::string& settings = "these settings");

// Of a record that the replay of its own settings does not follow: what other settings would do there is not known, so
// nothing is to be pasted, and the sentence says why. `where`: empty, or "in rank 3".
void WithholdUnproven(const std::string& where, Advice& advice);

}  // namespace ashlar::whatif

#endif  // ASHLAR_ANALYZER_WHATIF_ADVICE_H_
