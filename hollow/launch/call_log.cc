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
  path_ = path;
  file_ = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644);  // a pipe is not waited for
  if (file_ < 0) {
    SayUnwritten("");
    std::_Exit(3);
  }
  fcntl(file_, F_SETFL, fcntl(file_, F_GETFL) & ~O_NONBLOCK);
}

void CallLog::SayUnwritten(const char* what_then) const {
  const char* const why = errno == ENXIO ? "nobody reads this pipe" : std::strerror(errno);
  std::fprintf(stderr, "ashlar: ASHLAR_HOLLOW_CALLS: %s cannot be written: %s%s\n", path_.c_str(), why, what_then);
}

void CallLog::Add(const char* call, int device, std::uint64_t bytes, std::uint64_t place, Error error) const {
  const QuietFileLimit quiet;
  char line[160];
  const int length = std::snprintf(line, sizeof(line), "%s %d %" PRIu64 " 0x%" PRIx64 " %d\n", call, device, bytes,
                                   place, static_cast<int>(error));
  ssize_t written = 0;
  do {
    written = write(file_, line, static_cast<std::size_t>(length));
  } while (written < 0 && errno == EINTR);
  if (written == length) return;
  if (written >= 0) errno = ENOSPC;  // a part of the line was the last that had room
  if (lost_++ == 0) SayUnwritten(": the calls that follow are not in it");
}

}  // namespace ashlar::hollow
