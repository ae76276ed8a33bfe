// An answer about a snapshot of PyTorch on another maker's GPU, in the words of that GPU's PyTorch: torch.xpu in the
// place of torch.cuda, its variable for settings, its list of processes. What only CUDA's programs can do is left out:
// our allocator, and the commands that start a program.
//
//   SayFor(trace::Backend::kXpu, explanation);
#ifndef ASHLAR_COMMANDS_EXPLAIN_OTHER_BACKENDS_H_
#define ASHLAR_COMMANDS_EXPLAIN_OTHER_BACKENDS_H_

#include "allocator/trace/backend.h"
#include "commands/explain/explanation.h"

namespace ashlar::answers {

// Nothing for CUDA.
void SayFor(trace::Backend backend, Explanation& explanation);

}  // namespace ashlar::answers

#endif  // ASHLAR_COMMANDS_EXPLAIN_OTHER_BACKENDS_H_
