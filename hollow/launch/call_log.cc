#include "hollow/launch/call_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "hollow/books/file_limit.h"

namespace ashlar::hollow {

CallLog::CallLog() {
  const char* named = std::getenv("ASHLAR_HOLLOW_CALLS");
  if (named == nullptr || *named == '\0') return;
  std::string path = named;
  for (std::size_t at; (at = path.find("%p")) != std::string::npos;) path.replace(at, 2, std::to_string(getpid()));
  file_ = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file_ >= 0) return;
  std::fprintf(stderr, "ashlar: ASHLAR_HOLLOW_CALLS: %s cannot be written: %s\n", path.c_str(), std::strerror(errno));
  std::_Exit(3);
}

void CallLog::Add(const char* call, int device, std::uint64_t bytes, std::uint64_t place, Error error) const {
  const QuietFileLimit quiet;
  char line[160];
  const int length = std::snprintf(line, sizeof(line), "%s %d %" PRIu64 " 0x%" PRIx64 " %d\n", call, device, bytes,
                                   place, static_cast<int>(error));
  if (write(file_, line, static_cast<std::size_t>(length)) != length) return;  // a full disk: the log ends short
}

}  // namespace ashlar::hollow
