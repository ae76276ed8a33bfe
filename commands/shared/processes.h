// The processes of a program that runs.
//
//   for (const std::int64_t pid : ProcessesFrom(4242)) ...   // 4242, its children, theirs
#ifndef ASHLAR_COMMANDS_SHARED_PROCESSES_H_
#define ASHLAR_COMMANDS_SHARED_PROCESSES_H_

#include <cstdint>
#include <vector>

namespace ashlar::answers {

// The process and those below it, parents first; empty where there is no such process. Linux: by /proc.
std::vector<std::int64_t> ProcessesFrom(std::int64_t pid);

}  // namespace ashlar::answers

#endif  // ASHLAR_COMMANDS_SHARED_PROCESSES_H_
