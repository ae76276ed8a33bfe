// The commands that start a program. `program`: what stands behind "--", with its arguments.
#ifndef ASHLAR_LAUNCHER_LAUNCHER_H_
#define ASHLAR_LAUNCHER_LAUNCHER_H_

#include <string>
#include <vector>

#include "console/command_line.h"

namespace ashlar::cli {

// `ashlar dry-run`: unchanged, on a machine without a GPU; says what memory it took.
void AddDryRun(CommandLine& line, std::vector<std::string> program);

// `ashlar fit`: what to change in it so that it fits on a card, each change made from outside and run as dry-run runs
// it.
void AddFit(CommandLine& line, std::vector<std::string> program);

// `ashlar record`: on its GPU, without an edit to it; keeps its memory history: PyTorch's own, of a native program its
// calls on device memory.
void AddRecord(CommandLine& line, std::vector<std::string> program);

// `ashlar run-under`: a program that was built without us, with libraries of ours under it: --record keeps the history
// of its device memory, --serve serves that memory from a cache.
void AddRunUnder(CommandLine& line, std::vector<std::string> program);

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_LAUNCHER_H_
