// Leaks by their owners: what one variable of the program has of many iterations. A list, a dictionary, an attribute, a
// graph that a variable keeps, the errors of a list, a cycle, or a tensor that takes the place of a slightly smaller
// one again and again. What goes by itself after a while (a buffer of fixed length), what is there from the setup on
// and the graph of the pass under way are none. Pure function.
#ifndef ASHLAR_ANALYZER_ANALYSES_CAUSES_OWNED_LEAKS_H_
#define ASHLAR_ANALYZER_ANALYSES_CAUSES_OWNED_LEAKS_H_

#include <vector>

#include "analyzer/analyses/causes/leak_shapes.h"
#include "analyzer/analyses/holders/held_by_name.h"
#include "analyzer/analyses/steps/steps.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::analyses {

// At the moment of the names; one of each shape, most bytes first. `stacks` may be nullptr.
std::vector<LeakGrowth> OwnedLeaks(const timeline::Timeline& timeline, const trace::StackTable* stacks,
                                   const Steps& steps, const HeldByName& held);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_CAUSES_OWNED_LEAKS_H_
