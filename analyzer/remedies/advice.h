// The one line to paste, and why: what ranking.h chooses, in words.
#ifndef ASHLAR_ANALYZER_REMEDIES_ADVICE_H_
#define ASHLAR_ANALYZER_REMEDIES_ADVICE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "analyzer/remedies/ranking.h"
#include "analyzer/remedies/what_if.h"

namespace ashlar::remedies {

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

}  // namespace ashlar::remedies

#endif  // ASHLAR_ANALYZER_REMEDIES_ADVICE_H_
