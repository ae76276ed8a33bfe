// The ways to cut a sequence of requests into intervals, how good each is, and the best of them. Private to the search
// for a period.
#ifndef ASHLAR_ANALYZER_ANALYSES_STEPS_PERIOD_LEVEL_H_
#define ASHLAR_ANALYZER_ANALYSES_STEPS_PERIOD_LEVEL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
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

// The n-gram that starts at each request, by dense id. `width` is the least at which a shuffle of the same tokens is
// not expected to have two equal n-grams, so that a repeat means something.
struct Grams {
  std::size_t width = 0;
  std::vector<std::uint32_t> ids;                     // one a request but the last width - 1
  std::vector<std::vector<std::uint32_t>> positions;  // of each id, ascending
};

// Ascending positions in the sequence; interval i is [cuts[i], cuts[i + 1]).
using Cuts = std::vector<std::uint32_t>;

// The lower median of the lengths: the first interval may hold what only the first step makes.
std::uint32_t MedianInterval(const Cuts& cuts);
struct Interval {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};
// How many requests of one interval are part of an n-gram of another. `counts` is scratch, all zero or empty.
std::size_t CommonRequests(const Grams& grams, Interval of, Interval in, std::vector<std::uint32_t>& counts);
// Share of the requests of all intervals but the last that are part of an n-gram of the next one.
double Regularity(const Grams& grams, const Cuts& cuts);

// Whether the intervals lie inside one call of something that is less than a step: see step_period.h.
bool IsInsideOneCall(const Sequence& sequence, const Cuts& cuts, const trace::StackTable& stacks,
                     const ProgramParts& parts);

inline constexpr double kLeastRegularity = 0.6;  // of the requests, with stacks

// What a search goes by.
struct PeriodSearch {
  const timeline::Timeline& timeline;
  const trace::StackTable* stacks;  // nullptr: go by sizes
  const ProgramParts& parts;
  const std::vector<Phase>& phases;
  Sequence sequence;
  Grams grams = {};  // empty where too few requests are left to tell a period from

  std::size_t Count() const { return sequence.requests.size(); }
  // Of all requests of the timeline.
  double Share() const {
    if (sequence.all_requests == 0) return 0;
    return static_cast<double>(Count()) / static_cast<double>(sequence.all_requests);
  }
  std::size_t LeastSteps() const { return stacks != nullptr ? 2 : 3; }
  timeline::EventIndex EventAt(std::size_t position) const {
    return position < Count() ? timeline::EventIndex{sequence.requests[position].event} : timeline.event_count();
  }
};

PeriodSearch SearchOf(const timeline::Timeline& timeline, const trace::StackTable* stacks, const ProgramParts& parts,
                      const std::vector<Phase>& phases, Likeness likeness);

struct PeriodLevel {
  Cuts cuts;
  double regularity = 0;
  double crossed = 0;
};

// The shortest interval that stands by itself; where none does and stacks have ruled out what is less than a step, the
// most regular.
std::optional<PeriodLevel> BestLevel(const PeriodSearch& search);

}  // namespace ashlar::analyses::period

#endif  // ASHLAR_ANALYZER_ANALYSES_STEPS_PERIOD_LEVEL_H_
