#include "console/memory_end.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/formats/formats.h"
#include "commands/shared/layout.h"
#include "console/command.h"

namespace ashlar::cli {
namespace {

constexpr char kClearLine[] = "\r\033[K";
constexpr std::size_t kMostLineBytes = 1024;
constexpr std::size_t kMostNameBytes = 600;

// Written ahead: where the memory has ended no line can be made any more.
char last_line[kMostLineBytes] = "ashlar: out of memory\n";
std::size_t last_line_bytes = std::strlen(last_line);

void SetLastLine(const std::string& line) {
  last_line_bytes = std::min(line.size(), kMostLineBytes);
  std::memcpy(last_line, line.data(), last_line_bytes);
}

constexpr std::uint64_t kProgramBytes = 32 * kMiB;  // its own, with what threads reserve

// What an input takes at the peak of a command that reads and replays it: measured (docs/guide/explain.md), a little
// rounded up. What counts is not bytes but events, blocks and requests.
std::uint64_t BytesOfEvents(absl::string_view bytes) {
  std::uint64_t dicts = 0;  // an empty one, then its memo or the mark of its items
  for (std::size_t at = 0; at + 1 < bytes.size(); ++at) {
    const char next = bytes[at + 1];
    if (bytes[at] != '}') continue;
    dicts += next == '(' || next == 'q' || next == 'r' || next == '\x94' ? 1 : 0;
  }
  return 600 * dicts + std::uint64_t{bytes.size()};
}

// Of a large input its beginning is looked at, and all of it taken to be alike.
constexpr std::size_t kMostLookedAt = 16 * kMiB;

std::uint64_t NeededBytes(absl::string_view bytes) {
  if (bytes.size() > kMostLookedAt) {
    const std::uint64_t of_part = NeededBytes(bytes.substr(0, kMostLookedAt));
    return static_cast<std::uint64_t>(static_cast<double>(of_part) / static_cast<double>(kMostLookedAt) *
                                      static_cast<double>(bytes.size()));
  }
  switch (formats::Sniff(bytes)) {
    case formats::InputKind::kPickle:
      return BytesOfEvents(bytes);
    case formats::InputKind::kRecording:
      return 110 * std::uint64_t{bytes.size()};
    case formats::InputKind::kPlainTrace:
    case formats::InputKind::kRmmLog:
    case formats::InputKind::kPackingCsv:
    case formats::InputKind::kNativeLog:
      return 600 * static_cast<std::uint64_t>(std::count(bytes.begin(), bytes.end(), '\n'));
    default:
      return 3 * std::uint64_t{bytes.size()};
  }
}

bool goes_on = false;  // where files end

std::uint64_t kept_bytes = 0;   // of inputs that were read before
std::uint64_t input_bytes = 0;  // of the one that is being read

std::string NameOf(const std::string& input) {
  return input == "-" ? "standard input" : report::Shortened(report::Printable(input), kMostNameBytes);
}

std::string LimitText() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "there is no more: run it elsewhere";
  return absl::StrCat("the limit is ", FormatBytes(limit.rlim_cur), " (ulimit -v): raise it");
}

char short_line[kMostLineBytes] = "ashlar: an input was cut short while it was read\n";
std::size_t short_line_bytes = std::strlen(short_line);

void SetShortLine(const std::string& line) {
  short_line_bytes = std::min(line.size(), kMostLineBytes);
  std::memcpy(short_line, line.data(), short_line_bytes);
}

void OnBusError(int signal, siginfo_t* info, void* /*context*/) {
  if (info->si_code != BUS_ADRERR) {
    std::signal(signal, SIG_DFL);  // and again
    return;
  }
  if (isatty(STDERR_FILENO) == 1) (void)!write(STDERR_FILENO, kClearLine, sizeof(kClearLine) - 1);
  (void)!write(STDERR_FILENO, short_line, short_line_bytes);
  _exit(kUnreadable);
}

[[noreturn]] void OnNoMemory() {
  static std::atomic<bool> is_told{false};
  while (is_told.exchange(true)) pause();  // another thread tells it, and ends the process
  if (isatty(STDERR_FILENO) == 1) (void)!write(STDERR_FILENO, kClearLine, sizeof(kClearLine) - 1);
  (void)!write(STDERR_FILENO, last_line, last_line_bytes);
  _exit(kUnreadable);
}

}  // namespace

void EndWhereMemoryEnds() {
  SetLastLine(absl::StrCat("ashlar: out of memory: ", LimitText(), "\n"));
  std::set_new_handler(&OnNoMemory);
}

void EndWhereInputEnds() {
  struct sigaction action {};
  action.sa_sigaction = &OnBusError;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
}

void GoOnWhereFilesEnd() {
  struct sigaction now {};
  goes_on = sigaction(SIGXFSZ, nullptr, &now) == 0 && now.sa_handler == SIG_DFL;
  if (goes_on) std::signal(SIGXFSZ, SIG_IGN);
}

void EndWhereFilesEnd() {
  if (goes_on) std::signal(SIGXFSZ, SIG_DFL);
}

void ExpectMemoryFor(const std::string& input, std::uint64_t stored_bytes) {
  SetShortLine(absl::StrCat("ashlar: ", NameOf(input),
                            ": was cut short while it was read: run it again when nothing writes to it\n"));
  SetLastLine(absl::StrCat("ashlar: ", NameOf(input), ": out of memory while the file of ", FormatBytes(stored_bytes),
                           " was read, ", LimitText(), "\n"));
}

void ExpectMemoryFor(const std::string& input, absl::string_view bytes) {
  input_bytes = NeededBytes(bytes);
  const std::string needed = FormatBytes(kProgramBytes + kept_bytes + input_bytes);
  SetLastLine(absl::StrCat("ashlar: ", NameOf(input), ": out of memory: its ", FormatBytes(bytes.size()),
                           " take about ", needed, " to read and replay, ", LimitText(), ", or record fewer events\n"));
}

void KeepOfMemory(double share) { kept_bytes += static_cast<std::uint64_t>(static_cast<double>(input_bytes) * share); }

}  // namespace ashlar::cli
