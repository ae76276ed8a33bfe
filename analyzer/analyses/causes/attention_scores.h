// Finds the scores of attention among what a pass forward keeps: a number for every place against every other, in each
// head. They are told by growth (from one pass to another their size goes with the square of the length, that of most
// lines with the length), or by factors (all of a pass is rows x width, and the widths are those of the weights; what
// is as wide as no weight, and as long as heads x length, is scores). Pure function; sizes are bytes.
#ifndef ASHLAR_ANALYZER_ANALYSES_CAUSES_ATTENTION_SCORES_H_
#define ASHLAR_ANALYZER_ANALYSES_CAUSES_ATTENTION_SCORES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/analyses/causes/cause.h"
#include "analyzer/analyses/causes/program_memory.h"

namespace ashlar::analyses {

struct AttentionScores {
  std::vector<std::size_t> blocks = {};  // indices in Timeline::blocks(); empty: none that are felt
  std::string proof = {};                // a sentence
  std::uint64_t rows = 0;                // of the pass, batch x length; 0 where not known
};

AttentionScores FindAttentionScores(const CauseContext& context, const ProgramMemory& memory);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_CAUSES_ATTENTION_SCORES_H_
