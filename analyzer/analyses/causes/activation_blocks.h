// Which of the blocks that a pass forward keeps are scores of attention, and which are logits.
#ifndef ASHLAR_ANALYZER_ANALYSES_CAUSES_ACTIVATION_BLOCKS_H_
#define ASHLAR_ANALYZER_ANALYSES_CAUSES_ACTIVATION_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/analyses/causes/cause.h"
#include "analyzer/analyses/causes/program_memory.h"

namespace ashlar::analyses {

// Finds the scores of attention among what a pass forward keeps: a number for every position against every other, in
// each head. They are told by growth (from one pass to another their size goes with the square of the length, that of
// most lines with the length), or by factors (all of a pass is rows x width, and the widths are those of the weights;
// what is as wide as no weight, and as long as heads x length, is scores). Pure function; sizes are bytes.
struct AttentionScores {
  std::vector<std::size_t> blocks = {};  // indices in Timeline::blocks(); empty: none that are felt
  std::string proof = {};                // a sentence
  std::uint64_t rows = 0;                // of the pass, batch x length; 0 where not known
};

AttentionScores FindAttentionScores(const CauseContext& context, const ProgramMemory& memory);

// Finds the logits among what a pass keeps, and what the loss over classes makes of them: by PyTorch's own losses, or,
// where the program computes its loss itself, by sizes: the pass ends in a layer that has far more outputs than inputs.
// Pure function; sizes are bytes.
struct LogitBlocks {
  std::uint64_t bytes_each = 0;  // of the logits; 0: none were recorded
  std::vector<std::size_t> blocks =
      {};                  // of the pass and its backward pass: as large, half or twice that; none: not felt
  std::string proof = {};  // a sentence, where they were told by sizes
  // Of the failed request, where that is for the logits themselves; 0: it is not.
  std::uint64_t request_bytes = 0;
  bool is_another_asked = false;  // the failed request is as large as the blocks
};

LogitBlocks FindLogits(const CauseContext& context, const ProgramMemory& memory);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_CAUSES_ACTIVATION_BLOCKS_H_
