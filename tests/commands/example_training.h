// The bundled example: a simulated training run that dies of fragmentation, recorded as PyTorch would record it.
// docs/examples/training_oom.pickle is its snapshot; a test makes it again and compares the bytes.
#ifndef ASHLAR_TESTS_COMMANDS_EXAMPLE_TRAINING_H_
#define ASHLAR_TESTS_COMMANDS_EXAMPLE_TRAINING_H_

#include "allocator/trace/snapshot.h"

namespace ashlar::tests {

// Fine-tuning with AdamW, batches padded to their longest sequence, on a device with 12 GiB of which 550 MiB
// are taken by others. Default settings. Ends at the first request that runs out of memory.
trace::Snapshot ExampleTraining();

}  // namespace ashlar::tests

#endif  // ASHLAR_TESTS_COMMANDS_EXAMPLE_TRAINING_H_
