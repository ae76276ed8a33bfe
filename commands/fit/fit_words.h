// What text, markdown and JSON of `ashlar fit` say alike.
//
//   FitHeadline(answer);               // "fails at step 2 on T4 of 14.76 GiB as it is, which takes ..."
//   FitVerdictText(answer.rows[0]);    // "fits"
#ifndef ASHLAR_COMMANDS_FIT_FIT_WORDS_H_
#define ASHLAR_COMMANDS_FIT_FIT_WORDS_H_

#include <string>
#include <vector>

#include "commands/fit/fit.h"

namespace ashlar::report {

std::string FitNames(const std::vector<std::string>& changes);                     // "half-batch, checkpointing"
std::string FitRowName(const answers::FitRow& row);                                // the same of a row
std::string FitWorkText(const answers::FitAnswer& a, const answers::FitRow& row);  // "x 1.33"; "" where it is not known
std::string FitSettingText(const answers::FitSetting& of);  // "expandable_segments:True", "as it is"
std::string FitVerdictText(const answers::FitRow& row);
std::string FitPeakText(const answers::FitRow& row);                                // "-" where it is not known
std::string FitSavedText(const answers::FitAnswer& a, const answers::FitRow& row);  // "38 %"; a change may take more
std::string FitCostsText(const answers::FitAnswer& a, const answers::FitRow& row);  // "none"
std::string FitPlaceText(const answers::FitAnswer& a, const answers::FitRow& row);  // of one change: "train.py:88"
std::string FitHeadline(const answers::FitAnswer& a);
// What is to be known of the answer: prices, what was not tried, what --allow would add.
std::vector<std::string> FitRemarks(const answers::FitAnswer& a);

}  // namespace ashlar::report

#endif  // ASHLAR_COMMANDS_FIT_FIT_WORDS_H_
