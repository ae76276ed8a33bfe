// The order in which sets of changes are tried: the cheapest first, by the sum of their prices, as they were counted or
// else by the table; of sets that cost alike the cheaper one of the table, then the one of fewer changes, then the one
// of changes higher in the table.
//
//   for (const FitSet& set : SetsByPrice(answer)) ...   // {"half-batch"}, {"half-batch", "checkpointing"}, ...
//
// Changes that cost nothing are in every set: effects do not add up, and one that saves nothing alone may save once
// another is made. Those that turn out to be of no use are taken out at the end.
#ifndef ASHLAR_COMMANDS_FIT_FIT_SETS_H_
#define ASHLAR_COMMANDS_FIT_FIT_SETS_H_

#include <string>
#include <vector>

#include "commands/fit/fit.h"

namespace ashlar::answers {

struct FitSet {
  std::vector<std::string> changes;  // in the order of the table
  std::vector<std::string> priced;   // those of them that are not free
  double price = 0;                  // by what was counted, where it was (FitAnswer::PriceOf)
  int rough = 0;                     // by the table alone
};

// Of changes that apply, are allowed, and whose own row told something.
std::vector<FitSet> SetsByPrice(const FitAnswer& answer);

}  // namespace ashlar::answers

#endif  // ASHLAR_COMMANDS_FIT_FIT_SETS_H_
