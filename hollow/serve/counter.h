// Writes counts.h. Without the variable nothing is counted. Thread rule: any thread.
#ifndef ASHLAR_HOLLOW_SERVE_COUNTER_H_
#define ASHLAR_HOLLOW_SERVE_COUNTER_H_

#include "hollow/serve/counts.h"

namespace ashlar::serve {

// One more of it.
void Count(std::uint64_t ServedCounts::*what);
// The child of a fork has a file of its own.
void CountAnew();

}  // namespace ashlar::serve

#endif  // ASHLAR_HOLLOW_SERVE_COUNTER_H_
