// The traceback before a message: of Python, IPython and rich, whatever a launcher or a collector of logs put before
// each line.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "analyzer/formats/oom/oom_message.h"
#include "analyzer/formats/oom/oom_parser.h"
#include "analyzer/formats/utf8.h"

namespace ashlar::formats {
namespace {

constexpr absl::string_view kHead = "Traceback (most recent call last)";
constexpr std::size_t kReachBytes = std::size_t{1} << 17;  // of a traceback, and of what interleaves with it
constexpr std::size_t kMostLinesAfter = 12;                // source, marks and the exception behind the last frame
constexpr std::size_t kMostPrefixWords = 10;

// What a line begins with before its own text: words, of which those that tell a time differ from line to line. A
// rank's number, a host, a container or a process stays a word: it says who speaks.
using Prefix = std::vector<std::string>;
constexpr absl::string_view kTime = "\n";  // no word holds it

bool IsTime(absl::string_view word) {
  while (!word.empty() && absl::StrContains("[(", word.front())) word.remove_prefix(1);
  while (!word.empty() && absl::StrContains("]),", word.back())) word.remove_suffix(1);
  int separators = 0, digits = 0;
  for (const char c : word) {
    if (oom::IsDigit(c)) {
      ++digits;
    } else if (absl::StrContains(":-/.,+TZ", c)) {
      ++separators;
    } else {
      return false;
    }
  }
  return digits >= 3 && separators >= 1;
}

// The next word of `line`, its blanks before it taken off.
absl::string_view TakeWord(absl::string_view* line) {
  *line = absl::StripLeadingAsciiWhitespace(*line);
  const absl::string_view word = line->substr(0, std::min(line->find_first_of(" \t"), line->size()));
  line->remove_prefix(word.size());
  return word;
}

// nullopt: more words than any logger writes, so that `text` is no prefix.
std::optional<Prefix> PrefixOf(absl::string_view text) {
  Prefix out;
  for (absl::string_view word = TakeWord(&text); !word.empty(); word = TakeWord(&text)) {
    if (out.size() == kMostPrefixWords) return std::nullopt;
    out.push_back(IsTime(word) ? std::string(kTime) : std::string(word));
  }
  return out;
}

// What is left of a line that begins so; nullopt: another speaks.
std::optional<absl::string_view> AfterPrefix(absl::string_view line, const Prefix& prefix) {
  for (const std::string& expected : prefix) {
    const absl::string_view word = TakeWord(&line);
    if (expected == kTime ? !IsTime(word) : word != expected) {
      // A prefix may stand right before the text ("[rank0]:Traceback").
      const bool is_last = &expected == &prefix.back();
      if (!is_last || expected == kTime || !absl::StartsWith(word, expected)) return std::nullopt;
      return absl::string_view(word.data() + expected.size(),
                               line.data() + line.size() - word.data() - expected.size());
    }
  }
  return line;
}

std::optional<std::int32_t> LineNumber(absl::string_view digits) {
  std::int32_t line = 0;
  return !digits.empty() && absl::SimpleAtoi(digits, &line) && line >= 0 ? std::optional(line) : std::nullopt;
}

// `File "train.py", line 12, in step`
std::optional<trace::Frame> PythonFrameOf(absl::string_view line) {
  line = absl::StripAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&line, "File \"")) return std::nullopt;
  const std::size_t quote = line.find("\", line ");
  if (quote == absl::string_view::npos) return std::nullopt;
  trace::Frame frame;
  frame.file = ToUtf8(line.substr(0, quote));
  line.remove_prefix(quote + 8);
  const std::size_t comma = std::min(line.find(", in "), line.size());
  if (!absl::SimpleAtoi(line.substr(0, comma), &frame.line) || frame.line < 0) return std::nullopt;
  if (comma < line.size()) frame.function = ToUtf8(line.substr(comma + 5));
  return frame;
}

// A notebook's cell by its number: "/tmp/ipython-input-12-1234567890.py", "<ipython-input-12-0a1b>" -> "cell 12".
std::string CellOf(absl::string_view file) {
  const std::size_t at = file.find("ipython-input-");
  if (at == absl::string_view::npos) return "";
  absl::string_view number = file.substr(at + 14);
  number = number.substr(0, std::min(number.find_first_not_of("0123456789"), number.size()));
  return number.empty() ? "cell" : absl::StrCat("cell ", number);
}

// "train.py in main(args)", "File ~/train.py:212, in main(args)", "Cell In[12], line 5", "train.py:212 in main": the
// heads of IPython's and rich's frames. The line is 0 where only an arrow in the code below tells it.
std::optional<trace::Frame> FancyFrameOf(absl::string_view line) {
  constexpr std::size_t kMostFrameBytes = 400;  // a message is longer, and a log may have one in every line
  line = absl::StripAsciiWhitespace(line);
  if (line.size() > kMostFrameBytes) return std::nullopt;
  trace::Frame frame;
  absl::string_view cell = line;
  if (absl::ConsumePrefix(&cell, "Cell In[") || absl::ConsumePrefix(&cell, "Input In [")) {
    constexpr std::size_t kMostDigits = 8;
    const std::size_t close = cell.find(']');
    if (close > kMostDigits) return std::nullopt;  // none is farther than any
    frame.file = absl::StrCat("cell ", ToUtf8(cell.substr(0, close)));
    const std::size_t at = cell.find("line ");
    if (at != absl::string_view::npos) {
      absl::string_view digits = cell.substr(at + 5);
      digits = digits.substr(0, std::min(digits.find_first_not_of("0123456789"), digits.size()));
      frame.line = LineNumber(digits).value_or(0);
    }
    return frame;
  }
  absl::ConsumePrefix(&line, "File ");
  const std::size_t in = line.find(" in ");
  if (in == absl::string_view::npos || in == 0) return std::nullopt;
  absl::string_view file = absl::StripSuffix(line.substr(0, in), ",");
  const std::size_t colon = file.rfind(':');
  if (colon != absl::string_view::npos) {
    if (const std::optional<std::int32_t> number = LineNumber(file.substr(colon + 1)); number.has_value()) {
      frame.line = *number;
      file = file.substr(0, colon);
    }
  }
  const std::string in_cell = CellOf(file);
  if (in_cell.empty() && (!absl::EndsWith(file, ".py") || file.find_first_of(" \t") != absl::string_view::npos)) {
    return std::nullopt;
  }
  frame.file = in_cell.empty() ? ToUtf8(file) : in_cell;
  if (in_cell.empty()) {
    const absl::string_view function = absl::StripAsciiWhitespace(line.substr(in + 4));
    frame.function = ToUtf8(function.substr(0, std::min(function.find_first_of("( "), function.size())));
  }
  return frame;
}

bool IsMarks(absl::string_view code) { return code.find_first_not_of("^~ .") == absl::string_view::npos; }

// "---> 12     loss = model(x)" and "❱ 212 │   │   loss = model(x)": the line that failed, below its frame's head.
std::optional<std::pair<std::int32_t, std::string>> ArrowOf(absl::string_view line) {
  line = absl::StripAsciiWhitespace(line);
  const std::size_t dashes = std::min(line.find_first_not_of('-'), line.size());
  if (dashes > 0 && absl::StartsWith(line.substr(dashes), "> ")) {
    line.remove_prefix(dashes + 2);
  } else if (!absl::ConsumePrefix(&line, "❱")) {
    return std::nullopt;
  }
  const std::optional<std::int32_t> number = LineNumber(TakeWord(&line));
  if (!number.has_value()) return std::nullopt;
  for (line = absl::StripLeadingAsciiWhitespace(line); absl::ConsumePrefix(&line, "│");) {
    line = absl::StripLeadingAsciiWhitespace(line);
  }
  return std::pair(*number, ToUtf8(absl::StripTrailingAsciiWhitespace(line)));
}

// The sides of rich's box taken off.
absl::string_view Unboxed(absl::string_view line) {
  line = absl::StripAsciiWhitespace(line);
  if (absl::ConsumePrefix(&line, "│") && absl::ConsumeSuffix(&line, "│")) return line;
  return line;
}

// The lines before a message, the last first.
class LinesBack {
 public:
  explicit LinesBack(absl::string_view before) : before_(before), end_(before.size()) {}

  std::optional<absl::string_view> Next() {
    if (is_done_) return std::nullopt;
    const void* const newline = memrchr(before_.data(), '\n', end_);
    const std::size_t begin =
        newline == nullptr ? 0 : static_cast<std::size_t>(static_cast<const char*>(newline) - before_.data()) + 1;
    const absl::string_view line = before_.substr(begin, end_ - begin);
    is_done_ = begin == 0;
    end_ = is_done_ ? 0 : begin - 1;
    return absl::StripSuffix(line, "\r");
  }

 private:
  absl::string_view before_;
  std::size_t end_;
  bool is_done_ = false;
};

// What the lines of the speaker of the last line begin with, told by the nearest frame that begins as that line does;
// nullopt where no frame is near. It goes back no further than it must: a log may have a message in every line.
std::optional<Prefix> SpeakerOf(absl::string_view before) {
  constexpr std::size_t kMostOthers = 8 * kMostLinesAfter;  // of eight ranks that speak at once
  constexpr std::size_t kMostOtherBytes = std::size_t{1} << 14;
  LinesBack lines(before.substr(before.size() - std::min(before.size(), kMostOtherBytes)));
  const absl::string_view last = lines.Next().value_or("");
  for (std::size_t i = 0; i < kMostOthers; ++i) {
    const std::optional<absl::string_view> line = lines.Next();
    if (!line.has_value()) return std::nullopt;
    const std::size_t at = line->find("File \"");
    if (at == absl::string_view::npos || !PythonFrameOf(line->substr(at)).has_value()) continue;
    std::optional<Prefix> prefix = PrefixOf(line->substr(0, at));
    if (prefix.has_value() && AfterPrefix(last, *prefix).has_value()) return prefix;
  }
  return std::nullopt;
}

// The speaker's lines from the traceback's head on, the last first, without their prefix; none where no frame is near
// the end.
std::vector<absl::string_view> LinesBackToHead(absl::string_view before, const Prefix& speaker) {
  std::vector<absl::string_view> out;
  bool has_frame = false;
  LinesBack lines(before);
  while (const std::optional<absl::string_view> line = lines.Next()) {
    const std::optional<absl::string_view> words = AfterPrefix(*line, speaker);
    if (!words.has_value()) continue;
    out.push_back(*words);
    has_frame = has_frame || PythonFrameOf(*words).has_value();
    if (!has_frame && out.size() > kMostLinesAfter) return {};
    if (absl::StrContains(*words, kHead)) break;
  }
  return out;
}

void AddFrame(trace::Frame frame, std::vector<TracebackLine>& out) {
  if (out.size() == kMostTracebackLines) out.erase(out.begin());
  out.push_back({std::move(frame), ""});
}

std::vector<TracebackLine> PythonTraceback(absl::string_view before) {
  const std::optional<Prefix> speaker = SpeakerOf(before);
  if (!speaker.has_value()) return {};
  const std::vector<absl::string_view> lines = LinesBackToHead(before, *speaker);
  std::vector<TracebackLine> out;
  bool is_after_frame = false;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    std::optional<trace::Frame> frame = PythonFrameOf(*line);
    const absl::string_view words = absl::StripAsciiWhitespace(*line);
    if (frame.has_value()) {
      AddFrame(*std::move(frame), out);
      is_after_frame = true;
    } else if (std::exchange(is_after_frame, false) && !IsMarks(words)) {
      out.back().code = ToUtf8(words);
    }
  }
  return out;
}

// IPython's and rich's tracebacks print code around each line; only a head with its arrow, or with its line, is a
// frame.
std::vector<TracebackLine> FancyTraceback(absl::string_view before) {
  constexpr std::size_t kMostLines = 600;
  std::vector<absl::string_view> lines;
  LinesBack back(before);
  bool has_head = false;
  bool is_empty = true;  // of frames and arrows, near the message
  while (lines.size() < kMostLines && !has_head) {
    const std::optional<absl::string_view> line = back.Next();
    if (!line.has_value()) break;
    has_head = absl::StrContains(*line, kHead);
    lines.push_back(Unboxed(*line));
    is_empty = is_empty && !ArrowOf(lines.back()).has_value() && !FancyFrameOf(lines.back()).has_value();
    if (is_empty && lines.size() > 2 * kMostLinesAfter) return {};
  }
  if (!has_head) return {};
  std::vector<TracebackLine> out;
  std::optional<trace::Frame> open;  // a head that waits for its arrow
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (const auto arrow = ArrowOf(*line); arrow.has_value()) {
      if (!open.has_value()) continue;  // of a frame whose head was not read
      AddFrame(*std::exchange(open, std::nullopt), out);
      out.back().frame.line = arrow->first;
      out.back().code = arrow->second;
    } else if (std::optional<trace::Frame> frame = FancyFrameOf(*line); frame.has_value()) {
      if (open.has_value() && open->line > 0) AddFrame(*std::move(open), out);
      open = std::move(frame);
    }
  }
  if (open.has_value() && open->line > 0) AddFrame(*std::move(open), out);
  return out;
}

// A text within a line of JSON, up to the quote that ends it, or rsyslog's "#012" for a line's end: as it was.
std::string Unescaped(absl::string_view line) {
  std::string out;
  for (std::size_t i = 0; i < line.size() && line[i] != '"'; ++i) {
    const bool is_end = absl::StartsWith(line.substr(i), "#012");
    if (is_end) {
      out += '\n';
      i += 3;
    } else if (line[i] != '\\' || i + 1 == line.size()) {
      out += line[i];
    } else {
      const char next = line[++i];
      out += next == 'n' ? '\n' : next == 't' ? '\t' : next;
    }
  }
  return out;
}

// What a collector of logs wrote as one line of JSON, or one of JSON for each line; nullopt: plain lines.
std::optional<std::string> WithoutCollector(absl::string_view before) {
  const std::size_t newline = before.rfind('\n');
  const absl::string_view line = newline == absl::string_view::npos ? before : before.substr(newline + 1);
  if (absl::StrContains(line, "#012")) {
    std::string plain;
    for (absl::string_view rest = line; !rest.empty();) {
      const std::size_t end = std::min(rest.find("#012"), rest.size());
      absl::StrAppend(&plain, rest.substr(0, end), end < rest.size() ? "\n" : "");
      rest.remove_prefix(std::min(rest.size(), end + 4));
    }
    return plain;
  }
  for (const absl::string_view key : {"\"log\"", "\"message\"", "\"msg\"", "\"textPayload\"", "\"exception\""}) {
    std::string out;
    const auto value_of = [key](absl::string_view text) -> absl::string_view {
      const std::size_t at = text.rfind(key);
      const std::size_t open = at == absl::string_view::npos ? at : text.find('"', at + key.size());
      return open == absl::string_view::npos ? absl::string_view() : text.substr(open + 1);
    };
    if (value_of(line).empty()) continue;
    if (absl::StrContains(line, "\\n")) return Unescaped(value_of(line));
    constexpr std::size_t kMostLines = 400;
    std::vector<absl::string_view> lines;
    LinesBack back(before);
    while (lines.size() < kMostLines) {
      const std::optional<absl::string_view> next = back.Next();
      if (!next.has_value()) break;
      lines.push_back(*next);
    }
    for (auto one = lines.rbegin(); one != lines.rend(); ++one) {
      std::string text = Unescaped(value_of(*one));
      absl::StrAppend(&out, text, absl::EndsWith(text, "\n") || one + 1 == lines.rend() ? "" : "\n");
    }
    return out;
  }
  return std::nullopt;
}

// Without a terminal's colours (Python 3.13 colours its tracebacks).
std::string WithoutColours(absl::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b' && i + 1 < text.size() && text[i + 1] == '[') {
      i = std::min(text.find_first_of("mKGHJ", i), text.size());
      continue;
    }
    out += text[i];
  }
  return out;
}

// A program's file runs its <module> once: a second one is of another process that wrote in between.
bool IsMixed(const std::vector<TracebackLine>& lines) {
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].frame.function != "<module>") continue;
    for (std::size_t before = 0; before < i; ++before) {
      if (lines[before].frame.file == lines[i].frame.file && !lines[i].frame.file.empty()) return true;
    }
  }
  return false;
}

}  // namespace

std::vector<TracebackLine> TracebackBefore(absl::string_view text, std::size_t message_offset, bool* is_mixed) {
  message_offset = std::min(message_offset, text.size());
  const std::size_t from = message_offset > kReachBytes ? message_offset - kReachBytes : 0;
  absl::string_view before = text.substr(from, message_offset - from);
  const std::optional<std::string> uncollected = WithoutCollector(before);
  if (uncollected.has_value()) before = *uncollected;
  std::string plain;
  // A coloured traceback has colours near its end: a look at all of it would cost a log of many messages a minute.
  constexpr std::size_t kNearEnd = 2048;
  const absl::string_view near_end = before.substr(before.size() - std::min(before.size(), kNearEnd));
  if (absl::StrContains(near_end, "\x1b[")) before = plain = WithoutColours(before);
  std::vector<TracebackLine> out = PythonTraceback(before);
  if (out.empty()) out = FancyTraceback(before);
  const bool mixed = IsMixed(out);
  if (is_mixed != nullptr) *is_mixed = mixed;
  if (mixed) out.clear();
  return out;
}

}  // namespace ashlar::formats
