// Finds the cards that are enough for native programs, which have no allocator to replay: the peak of the device's
// books is held against each card. What can be replayed is in answers/cards.h.
//
//   answers::CardTable table = BooksOnCards(results);
#ifndef ASHLAR_ANALYZER_CLI_LAUNCH_CARDS_H_
#define ASHLAR_ANALYZER_CLI_LAUNCH_CARDS_H_

#include "analyzer/answers/cards.h"
#include "analyzer/cli/launch_results.h"

namespace ashlar::cli {

using answers::CardOutcome;
using answers::CardRow;
using answers::CardTable;

// The device on which the processes together held most, with contexts as each card has them.
CardTable BooksOnCards(const RunResults& results);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_LAUNCH_CARDS_H_
