// Finds the logits among what a pass keeps, and what the loss over classes makes of them: by PyTorch's own losses, or,
// where the program computes its loss itself, by sizes: the pass ends in a layer that has far more outputs than inputs.
// Pure function; sizes are bytes.
#ifndef ASHLAR_ANALYZER_ANALYSES_CAUSES_LOGIT_BLOCKS_H_
#define ASHLAR_ANALYZER_ANALYSES_CAUSES_LOGIT_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "analyzer/analyses/causes/cause.h"
#include "analyzer/analyses/causes/program_memory.h"

namespace ashlar::analyses {

struct LogitBlocks {
  std::uint64_t bytes_each = 0;  // of the logits; 0: none were recorded
  std::vector<std::size_t> blocks =
      {};                  // of the pass and its backward pass: as large, half or twice that; none: not felt
  std::string proof = {};  // a sentence, where they were told by sizes
};

LogitBlocks FindLogits(const CauseContext& context, const ProgramMemory& memory);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_CAUSES_LOGIT_BLOCKS_H_
