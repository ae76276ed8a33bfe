// What a sweep makes of its replays: rows in order, the one that is chosen, and the line to paste. A fleet, whose rows
// are replayed file by file, makes the same of its own.
//
//   SweepResult result;             // rows in any order; each row has one trace an input, the baseline is marked
//   FinishRows("", result);
//   result.rows.front();            // the best
//   result.advice.paste;
#ifndef ASHLAR_ANALYZER_REMEDIES_SWEEP_ROWS_H_
#define ASHLAR_ANALYZER_REMEDIES_SWEEP_ROWS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "analyzer/remedies/sweep.h"

namespace ashlar::remedies {

// Sets the scores; the positions of the rows, best first.
std::vector<std::size_t> RankRows(SweepResult& result);

// Adds the answer of one trace to a row, and its risks.
void AddTrace(WhatIfRow answer, SweepRow& row);

// Sorts the rows, best first, marks them and chooses one. `carried` is what every offered conf keeps.
void FinishRows(const std::string& carried, SweepResult& result);

}  // namespace ashlar::remedies

#endif  // ASHLAR_ANALYZER_REMEDIES_SWEEP_ROWS_H_
