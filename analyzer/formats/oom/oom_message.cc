#include "analyzer/formats/oom/oom_message.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "allocator/base/units.h"
#include "analyzer/formats/mapped_file.h"
#include "analyzer/formats/oom/oom_parser.h"
#include "analyzer/formats/utf8.h"

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

namespace ashlar::readers::oom {

// One failure may be told by several findings: this makes one message of them.

namespace {

constexpr absl::string_view kStatistics = "tf-bfc-statistics";
// A failed step logs its warnings right before it raises; a warning farther away tells of another moment.
constexpr std::size_t kWarningReachBytes = 32768;

bool IsWarning(const OomMessage& message) { return message.family == "pt-warning"; }

bool Overlap(const Figure& a, const Figure& b) { return a.low_bytes <= b.high_bytes && b.low_bytes <= a.high_bytes; }

bool MapsPages(const OomMessage& message) {
  return !message.notes.empty() && message.notes.front().name == "maps_pages";
}

// Whether `message` is the failure that `warning` announces: a message of PyTorch, of the same device and size.
bool Announces(const OomMessage& warning, const OomMessage& message) {
  if (message.family.substr(0, 3) != "pt-" || IsWarning(message) || !message.tried) return false;
  if (message.device && message.device != warning.device) return false;
  if (message.byte_offset - warning.end_offset > kWarningReachBytes) return false;
  return MapsPages(warning) || Overlap(*warning.tried, *message.tried);
}

// The last of the warnings before a failure has the figures of its moment, to the byte.
void TakeFigures(const OomMessage& warning, OomMessage& message) {
  message.AddNote("announced", "warnings of the allocator before this message, each a call that the device refused");
  const auto narrow = [](const std::optional<Figure>& exact, std::optional<Figure>& printed) {
    if (!exact || !printed || !Overlap(*exact, *printed)) return;
    printed->low_bytes = exact->low_bytes;
    printed->high_bytes = exact->high_bytes;
  };
  if (!MapsPages(warning)) narrow(warning.tried, message.tried);
  narrow(warning.total, message.total);
  narrow(warning.free, message.free);
}

void JoinWarnings(std::vector<OomMessage>& messages) {
  std::vector<OomMessage> kept;
  for (OomMessage& message : messages) {
    std::size_t announced = kept.size();
    while (announced > 0 && IsWarning(kept[announced - 1]) && Announces(kept[announced - 1], message)) --announced;
    for (std::size_t i = announced; i < kept.size(); ++i) TakeFigures(kept[i], message);
    kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(announced), kept.end());
    kept.push_back(std::move(message));
  }
  messages = std::move(kept);
}

// Statistics without a message before them are no failure: a program may print them at any time.
void JoinStatistics(std::vector<OomMessage>& messages) {
  std::vector<OomMessage> kept;
  for (OomMessage& message : messages) {
    if (message.family != kStatistics) {
      kept.push_back(std::move(message));
    } else if (!kept.empty() && kept.back().family == "tf-bfc" && !kept.back().limit) {
      kept.back().limit = message.limit;
      kept.back().reserved = message.reserved;
      kept.back().details.insert(kept.back().details.end(), message.details.begin(), message.details.end());
      kept.back().end_offset = message.end_offset;
    }
  }
  messages = std::move(kept);
}

}  // namespace

void JoinFindings(std::vector<OomMessage>& messages) {
  JoinWarnings(messages);
  JoinStatistics(messages);
}

}  // namespace ashlar::readers::oom

namespace ashlar::readers {
namespace {

using oom::Anchor;
using oom::Finding;
using oom::SqueezedText;

// A long text is read in windows that overlap, so that memory stays bounded; a message is far shorter than the overlap.
constexpr std::size_t kWindowBytes = std::size_t{1} << 20;
constexpr std::size_t kOverlapBytes = std::size_t{1} << 14;
constexpr std::size_t kLookBackBytes = 512;

struct Candidate {
  std::size_t at;
  std::size_t order;
  const Anchor* anchor;
};

void CollectAnchors(absl::string_view squeezed, const std::vector<Anchor>& anchors, std::vector<Candidate>& out) {
  for (const Anchor& anchor : anchors) {
    for (std::size_t at = squeezed.find(anchor.words); at != absl::string_view::npos;
         at = squeezed.find(anchor.words, at + 1)) {
      out.push_back({at, out.size(), &anchor});
    }
  }
}

std::vector<Candidate> Candidates(absl::string_view squeezed) {
  std::vector<Candidate> found;
  CollectAnchors(squeezed, oom::OurAnchors(), found);
  CollectAnchors(squeezed, oom::TorchAnchors(), found);
  CollectAnchors(squeezed, oom::FrameworkAnchors(), found);
  CollectAnchors(squeezed, oom::LibraryAnchors(), found);
  std::sort(found.begin(), found.end(), [](const Candidate& left, const Candidate& right) {
    return std::pair(left.at, left.order) < std::pair(right.at, right.order);
  });
  return found;
}

// Certainly larger, whatever the rounding of the print hid.
bool CertainlyOver(const std::optional<Figure>& left, const std::optional<Figure>& right) {
  return left && right && left->low_bytes > right->high_bytes;
}

void DropImpossibleProcesses(OomMessage& message) {
  for (ProcessUse& process : message.processes) {
    if (!CertainlyOver(process.used, message.total)) continue;
    message.AddNote("impossible_figure", absl::StrCat(process.used->printed, " in use by a process is more than the ",
                                                      "device has; it is left out"));
    process.used.reset();
  }
}

// Names what cannot be true together and keeps it out of the arithmetic.
void DropContradictions(OomMessage& message) {
  if (CertainlyOver(message.free, message.total)) {
    message.AddNote("impossible_figure", absl::StrCat(message.free->printed, " free is more than the total capacity, ",
                                                      message.total->printed, "; it is left out"));
    message.free.reset();
  }
  DropImpossibleProcesses(message);
  if (CertainlyOver(message.allocated, message.reserved)) {
    message.AddNote("allocated_over_reserved",
                    absl::StrCat(message.allocated->printed, " allocated is more than the ", message.reserved->printed,
                                 " reserved; the reserved figure is left out"));
    message.reserved.reset();
  }
  if (CertainlyOver(message.reserved, message.total)) {
    message.AddNote("reserved_over_total",
                    absl::StrCat(message.reserved->printed, " reserved is more than the ", message.total->printed,
                                 " the device has: the driver spilled into host memory (Windows, WSL)"));
  }
}

// Reads the window [begin, end) of `text`; adds what begins at or after `from` and before `until`.
void ReadWindow(absl::string_view text, std::size_t begin, std::size_t end, std::size_t from, std::size_t until,
                std::size_t& consumed, std::vector<OomMessage>& out) {
  const SqueezedText squeezed(text.substr(begin, end - begin), begin);
  for (const Candidate& candidate : Candidates(squeezed.text())) {
    const std::size_t offset = squeezed.OffsetOf(candidate.at);
    if (offset < from || offset >= until || offset < consumed) continue;
    std::optional<Finding> finding = candidate.anchor->parse(squeezed, candidate.at);
    if (!finding) continue;
    OomMessage& message = finding->message;
    message.byte_offset = std::max(squeezed.OffsetOf(finding->begin), consumed);
    const std::size_t last = std::max(finding->end, candidate.at + candidate.anchor->words.size()) - 1;
    message.end_offset = squeezed.OffsetOf(last) + 1;
    DropContradictions(message);
    consumed = std::max(message.end_offset, offset + 1);
    out.push_back(std::move(message));
  }
}

}  // namespace

std::string Figure::InWords() const {
  const bool is_bytes = printed.find_first_of("MGTKkP") == std::string::npos;
  return is_bytes && low_bytes == high_bytes && low_bytes >= kMiB ? FormatBytes(low_bytes) : printed;
}

void OomMessage::AddNote(absl::string_view name, absl::string_view message) {
  for (trace::Note& note : notes) {
    if (note.name == name && note.message == message) {
      ++note.count;
      return;
    }
  }
  notes.push_back({std::string(name), std::string(message), 1});
}

std::vector<OomMessage> FindOomMessages(absl::string_view text) {
  std::vector<OomMessage> out;
  std::size_t consumed = 0;
  for (std::size_t from = 0; from < text.size(); from += kWindowBytes) {
    const std::size_t begin = from > kLookBackBytes ? from - kLookBackBytes : 0;
    const std::size_t until = std::min(text.size(), from + kWindowBytes);
    const std::size_t end = std::min(text.size(), until + kOverlapBytes);
    ReadWindow(text, begin, end, from, until, consumed, out);
    GiveBackPages(text.substr(begin, until - begin));
  }
  oom::JoinFindings(out);
  PagesBehind behind(text.data());
  for (OomMessage& message : out) {
    message.traceback = TracebackBefore(text, message.byte_offset);
    behind.ReadTo(text.data() + message.byte_offset);
  }
  return out;
}

bool LooksLikeOomMessage(absl::string_view text) { return !FindOomMessages(text).empty(); }

}  // namespace ashlar::readers
