// Made-up values stand for bytes that only a kernel would have written, when the host reads them.
#ifndef ASHLAR_HOLLOW_LAUNCH_MADE_UP_H_
#define ASHLAR_HOLLOW_LAUNCH_MADE_UP_H_

#include <cstdint>

#include "ashlar/hollow.h"

namespace ashlar::hollow {

// Writes what --values says: zeros, bytes of 1, or random bytes that are the same in each run.
void WriteMadeUp(void* host, std::uint64_t bytes);
// Counts a read, under the line of the program that is under way: as the program's own teller of lines says
// (ashlar_hollow_set_line), else the innermost native function outside NVIDIA's and PyTorch's libraries.
// The caller holds no lock.
void CountMadeUp(std::uint64_t bytes);
void SetLineTeller(ashlar_hollow_line line);

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_LAUNCH_MADE_UP_H_
