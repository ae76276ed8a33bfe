// One way to cut a sequence of requests into intervals, and how good it is. Private to the search for a period.
#ifndef ASHLAR_ANALYZER_ANALYSES_STEPS_PERIOD_LEVEL_H_
#define ASHLAR_ANALYZER_ANALYSES_STEPS_PERIOD_LEVEL_H_

#include <cstdint>
#include <vector>

#include "analyzer/analyses/steps/program_part.h"
#include "analyzer/analyses/steps/steps.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::analyses::period {

// The allocations of a timeline as a sequence of tokens, and the n-grams of it: what the search for a period looks at.
// Equal requests have equal tokens; what makes two requests equal is chosen by the maker. Private to the search.
struct SequenceItem {
  timeline::ColumnIndex event = 0;
  std::uint32_t token = 0;  // dense, in order of first appearance
  trace::StackId stack = trace::kNoStack;
  timeline::ColumnIndex freed = timeline::kNever;
};

enum class Likeness {
  kSizeAndStack,    // the same bytes from the same place
  kStack,           // the same place: sizes change with the batch
  kSize,            // the same bytes: where there are no stacks
  kPersistentSize,  // kSize without the sizes that come and go: what does not change with the batch
};

struct Sequence {
  std::vector<SequenceItem> requests;
  std::size_t all_requests = 0;  // of the timeline; more than requests.size() for kPersistentSize
};

Sequence MakeSequence(const timeline::Timeline& timeline, Likeness likeness);

// The n-gram that starts at each request, by dense id. `width` is the least at which a shuffle of the same tokens is
// not expected to have two equal n-grams, so that a repeat means something.
struct Grams {
  std::size_t width = 0;
  std::vector<std::uint32_t> ids;                     // one a request but the last width - 1
  std::vector<std::vector<std::uint32_t>> positions;  // of each id, ascending
};

Grams MakeGrams(const Sequence& sequence);

// Ascending positions in the sequence; interval i is [cuts[i], cuts[i + 1]).
using Cuts = std::vector<std::uint32_t>;

// The lower median of the lengths: the first interval may hold what only the first step makes.
std::uint32_t MedianInterval(const Cuts& cuts);
// Share of the intervals whose length is within 15 % of the median.
double Evenness(const Cuts& cuts);
struct Interval {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};
// How many requests of one interval are part of an n-gram of another. `counts` is scratch, all zero or empty.
std::size_t CommonRequests(const Grams& grams, Interval of, Interval in, std::vector<std::uint32_t>& counts);
// Share of the requests of all intervals but the last that are part of an n-gram of the next one.
double Regularity(const Grams& grams, const Cuts& cuts);
// Share of the inner cuts that a block crosses which was allocated before the cut and freed at least two cuts later.
double CrossedShare(const Sequence& sequence, const Cuts& cuts);

// Whether the intervals lie inside one call of something that is less than a step: see step_period.h.
bool IsInsideOneCall(const Sequence& sequence, const Cuts& cuts, const trace::StackTable& stacks,
                     const ProgramParts& parts);

// Candidates, one a count of occurrences: the most even n-gram of that count. At most `most`, those with most
// n-grams of their count first.
std::vector<Cuts> CandidateCuts(const Grams& grams, std::size_t most);

}  // namespace ashlar::analyses::period

#endif  // ASHLAR_ANALYZER_ANALYSES_STEPS_PERIOD_LEVEL_H_
