// The allocations of a timeline as a sequence of tokens, and the n-grams of it: what the search for a period looks at.
// Equal requests have equal tokens; what makes two requests equal is chosen by the maker. Private to the search.
#ifndef ASHLAR_ANALYZER_ANALYSES_STEPS_REQUEST_SEQUENCE_H_
#define ASHLAR_ANALYZER_ANALYSES_STEPS_REQUEST_SEQUENCE_H_

#include <cstdint>
#include <vector>

#include "analyzer/timeline/timeline.h"

namespace ashlar::analyses::period {

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

}  // namespace ashlar::analyses::period

#endif  // ASHLAR_ANALYZER_ANALYSES_STEPS_REQUEST_SEQUENCE_H_
