#include "analyzer/cli/progress_line.h"

#include <unistd.h>

#include <cstdio>

namespace ashlar::cli {

ProgressLine::ProgressLine() : is_terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  if (is_shown_) std::fputs("\r\033[K", stderr);
}

void ProgressLine::Show(const std::string& text) {
  const auto now = std::chrono::steady_clock::now();
  if (!is_terminal_ || now - shown_ < (is_shown_ ? std::chrono::milliseconds(100) : std::chrono::seconds(1))) return;
  std::fprintf(stderr, "\r\033[K%s", text.c_str());
  std::fflush(stderr);
  is_shown_ = true;
  shown_ = now;
}

}  // namespace ashlar::cli
