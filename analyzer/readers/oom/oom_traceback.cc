#include "analyzer/readers/oom/oom_traceback.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "analyzer/readers/oom/oom_message_prefix.h"
#include "analyzer/readers/utf8.h"

namespace ashlar::readers {
namespace {

constexpr absl::string_view kHead = "Traceback (most recent call last)";
constexpr std::size_t kReachBytes = std::size_t{1} << 17;  // of a traceback, and of what interleaves with it
constexpr std::size_t kMostLinesAfter = 12;                // source, marks and the exception behind the last frame

// "[rank0]: " of a line, without blanks; a timestamp alone names nobody.
absl::string_view SpeakerOf(absl::string_view line) {
  const absl::string_view words = absl::StripLeadingAsciiWhitespace(line);
  const bool is_named = absl::StartsWith(words, "[rank") || absl::StartsWith(words, "(");
  return is_named ? words.substr(0, words.find_first_of("])")) : absl::string_view();
}

absl::string_view WithoutPrefix(absl::string_view line) {
  for (std::size_t length = 0; (length = oom::LinePrefixLength(line)) > 0;) line.remove_prefix(length);
  return line;
}

// `File "train.py", line 12, in step`
std::optional<trace::Frame> FrameOf(absl::string_view line) {
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

bool IsMarks(absl::string_view code) { return code.find_first_not_of("^~ .") == absl::string_view::npos; }

absl::string_view WordsOf(absl::string_view line) { return absl::StripAsciiWhitespace(WithoutPrefix(line)); }

// The speaker's lines from the traceback's head on, the last first; none where no frame is near the end. It goes back
// from the end and no further than it must: a log may have a message in every line.
std::vector<absl::string_view> LinesBackToHead(absl::string_view before) {
  std::vector<absl::string_view> out;
  absl::string_view speaker;
  bool has_frame = false;
  for (std::size_t end = before.size();;) {
    const std::size_t newline = end == 0 ? absl::string_view::npos : before.rfind('\n', end - 1);
    const std::size_t begin = newline == absl::string_view::npos ? 0 : newline + 1;
    const absl::string_view line = before.substr(begin, end - begin);
    if (end == before.size()) speaker = SpeakerOf(line);
    if (SpeakerOf(line) == speaker) {
      out.push_back(line);
      has_frame = has_frame || FrameOf(WordsOf(line)).has_value();
      if (!has_frame && out.size() > kMostLinesAfter) return {};
      if (absl::StrContains(line, kHead)) break;
    }
    if (begin == 0) break;
    end = begin - 1;
  }
  return out;
}

}  // namespace

std::vector<TracebackLine> TracebackBefore(absl::string_view text, std::size_t message_offset) {
  message_offset = std::min(message_offset, text.size());
  const std::size_t from = message_offset > kReachBytes ? message_offset - kReachBytes : 0;
  const std::vector<absl::string_view> lines = LinesBackToHead(text.substr(from, message_offset - from));
  std::vector<TracebackLine> out;
  bool is_after_frame = false;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const absl::string_view words = WordsOf(*line);
    std::optional<trace::Frame> frame = FrameOf(words);
    if (frame.has_value()) {
      if (out.size() == kMostTracebackLines) out.erase(out.begin());
      out.push_back({*std::move(frame), ""});
      is_after_frame = true;
    } else if (std::exchange(is_after_frame, false) && !IsMarks(words)) {
      out.back().code = ToUtf8(words);
    }
  }
  return out;
}

}  // namespace ashlar::readers
