#include "commands/watch_screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "commands/shared/layout.h"
#include "commands/watch/watch.h"

namespace ashlar::cli {
namespace {

constexpr std::array<int, 3> kEndingSignals = {SIGINT, SIGTERM, SIGHUP};
constexpr std::size_t kUsualRows = 24;
constexpr std::size_t kUsualScreenColumns = 80;

volatile sig_atomic_t is_end_wanted = 0;

void WantEnd(int) { is_end_wanted = 1; }

winsize ScreenSize() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) size = {};
  return size;
}

void PutOut(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace

WatchScreen::WatchScreen(bool draws) : draws_(draws) {
  struct sigaction action {};
  action.sa_handler = WantEnd;
  for (std::size_t i = 0; i < kEndingSignals.size(); ++i) sigaction(kEndingSignals[i], &action, &actions_[i]);
  if (!draws_) return;
  has_input_ = tcgetattr(STDIN_FILENO, &before_) == 0;
  if (has_input_) {
    termios quiet = before_;
    quiet.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &quiet);
  }
  PutOut("\033[?1049h\033[?25l");
}

WatchScreen::~WatchScreen() {
  if (draws_) PutOut("\033[?25h\033[?1049l");
  if (has_input_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  for (std::size_t i = 0; i < kEndingSignals.size(); ++i) sigaction(kEndingSignals[i], &actions_[i], nullptr);
}

std::size_t WatchScreen::Columns() {
  const winsize size = ScreenSize();
  return size.ws_col > 0 ? size.ws_col : kUsualScreenColumns;
}

std::size_t WatchScreen::Rows() {
  const winsize size = ScreenSize();
  return size.ws_row > 0 ? size.ws_row : kUsualRows;
}

void WatchScreen::Draw(const std::string& text) const {
  std::string out = "\033[H";
  const std::size_t columns = Columns();
  std::size_t rows = Rows();
  for (std::size_t at = 0; at < text.size() && rows > 0; --rows) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    out += (columns < report::kLeastWatchWidth ? report::Shortened(line, columns) : line) + "\033[K";
    at = end + 1;
    if (at < text.size() && rows > 1) out += "\r\n";
  }
  PutOut(out + "\033[J");
}

bool WatchScreen::WaitForEnd(int milliseconds) const {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  while (is_end_wanted == 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd input{STDIN_FILENO, POLLIN, 0};
    // Also returns early where a signal comes.
    if (poll(&input, has_input_ ? 1 : 0, static_cast<int>(left.count())) <= 0) continue;
    char key = 0;
    if (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q') return true;
  }
  return true;
}

}  // namespace ashlar::cli
