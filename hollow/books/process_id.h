// Identifies a process by its number and the time it started, so that a number that was given again does not stand for
// its first owner.
//
//   ProcessId mine = ProcessId::Mine();
//   ... another process ...
//   if (!IsAlive(mine)) GiveBack(mine);
//
// A process that ended and was not waited for (a zombie) is not alive: its memory is gone.
// Units: `start` is in clock ticks after boot, as field 22 of /proc/PID/stat (man 5 proc); 0 where it cannot be read.
// Thread rule: any thread.
#ifndef ASHLAR_HOLLOW_BOOKS_PROCESS_ID_H_
#define ASHLAR_HOLLOW_BOOKS_PROCESS_ID_H_

#include <cstdint>

namespace ashlar::hollow {

struct ProcessId {
  std::int32_t pid = 0;
  std::uint64_t start = 0;

  static ProcessId Mine();
  bool operator==(const ProcessId&) const = default;
};

bool IsAlive(const ProcessId& process);

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_BOOKS_PROCESS_ID_H_
