#include "hollow/books/process_id.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ashlar::hollow {
namespace {

struct StatLine {
  bool read = false;
  char state = 0;
  std::uint64_t start = 0;
};

StatLine ReadStat(int pid) {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  char text[1024];
  const ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  if (size <= 0) return {};
  text[size] = 0;
  // The name, field 2, may hold blanks and brackets: the last bracket ends it. Field 3 is the state, field 22 the
  // start.
  const char* at = std::strrchr(text, ')');
  if (at == nullptr || at[1] == 0) return {};
  StatLine line{.read = true, .state = at[2]};
  at += 2;
  for (int field = 3; field < 22 && at != nullptr; ++field) {
    at = std::strchr(at, ' ');
    if (at != nullptr) ++at;
  }
  if (at != nullptr) line.start = std::strtoull(at, nullptr, 10);
  return line;
}

}  // namespace

ProcessId ProcessId::Mine() {
  const int pid = getpid();
  return {pid, ReadStat(pid).start};
}

bool IsAlive(const ProcessId& process) {
  if (process.pid <= 0) return false;
  if (kill(process.pid, 0) != 0 && errno == ESRCH) return false;
  const StatLine line = ReadStat(process.pid);
  if (!line.read) return true;  // no /proc: the signal's word is all there is
  if (line.state == 'Z' || line.state == 'X') return false;
  return process.start == 0 || line.start == process.start;
}

}  // namespace ashlar::hollow
