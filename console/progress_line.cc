#include "console/progress_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "analyzer/formats/mapped_file.h"
#include "commands/shared/layout.h"

namespace ashlar::cli {
namespace {

constexpr std::chrono::milliseconds kUntilShown{1000};
constexpr std::chrono::milliseconds kBetweenDraws{200};
constexpr std::size_t kUsualColumns = 80;

ProgressLine* progress_of_command = nullptr;

std::size_t TerminalColumns() {
  winsize size{};
  const bool is_known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size.ws_col : kUsualColumns;
}

// Of a large file that is being read: "  41 %, 390 MB/s, 3 s left".
std::string RateText(std::int64_t seconds) {
  const formats::ReadingProgress progress = formats::ProgressOfReading();
  if (progress.done_bytes == 0 || progress.done_bytes >= progress.all_bytes || seconds <= 0) return "";
  const double rate = static_cast<double>(progress.done_bytes) / static_cast<double>(seconds);
  const double left = static_cast<double>(progress.all_bytes - progress.done_bytes) / rate;
  return absl::StrFormat("  %d %%, %.0f MB/s, %.0f s left", progress.done_bytes * 100 / progress.all_bytes, rate / 1e6,
                         left);
}

}  // namespace

ProgressLine::ProgressLine() {
  progress_of_command = this;
  if (isatty(STDERR_FILENO) != 1) return;
  try {
    painter_ = std::thread([this] { Paint(); });
  } catch (const std::system_error&) {
    return;  // no thread to be had: no progress
  }
}

ProgressLine::~ProgressLine() {
  Stop();
  progress_of_command = nullptr;
}

void ProgressLine::End() {
  if (progress_of_command != nullptr) progress_of_command->Stop();
}

void ProgressLine::Stop() {
  if (!painter_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_ended_ = true;
  }
  ended_.notify_all();
  painter_.join();
}

void ProgressLine::Show(const std::string& text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  text_ = text;
}

std::function<void(const std::string&)> ProgressLine::Shower() {
  return [this](const std::string& text) { Show(text); };
}

void ProgressLine::Paint() {
  std::unique_lock<std::mutex> lock(mutex_);
  std::chrono::milliseconds until = kUntilShown;
  bool is_shown = false;
  while (!ended_.wait_for(lock, until, [this] { return is_ended_; })) {
    until = kBetweenDraws;
    if (text_.empty()) continue;
    Draw();
    is_shown = true;
  }
  if (!is_shown) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
}

// One row at most: more could not be taken away.
void ProgressLine::Draw() const {
  const auto passed = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begin_);
  const std::string seconds = absl::StrCat(RateText(passed.count()), " (", passed.count(), " s)");
  const std::size_t columns = TerminalColumns();
  const std::size_t room = columns > seconds.size() + 8 ? columns - seconds.size() - 1 : 8;
  std::fprintf(stderr, "\r\033[K%s%s", report::Shortened(report::Printable(text_), room).c_str(), seconds.c_str());
  std::fflush(stderr);
}

}  // namespace ashlar::cli
