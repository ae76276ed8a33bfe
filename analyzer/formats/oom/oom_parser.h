// What the parsers of out-of-memory messages share: the text without what loggers and launchers put before its lines, a
// cursor over it, and what was found.
#ifndef ASHLAR_ANALYZER_FORMATS_OOM_OOM_PARSER_H_
#define ASHLAR_ANALYZER_FORMATS_OOM_OOM_PARSER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "analyzer/formats/oom/oom_message.h"

namespace ashlar::formats::oom {

// Takes away what loggers and launchers put before every line, so that a message they broke over lines reads in one
// piece:
//
//   [rank0]: GPU 0 has a total          (RayWorker pid=12) GPU 0 has       2024-06-13 10:22:33,104 ERROR GPU 0 has
//   ERROR 06-13 10:22:33 engine.py:110] GPU 0      [1,0]<stderr>:GPU 0     worker-1  | GPU 0       3: GPU 0
//
// Private to the reader of out-of-memory messages.

// The length of one such piece at the beginning of `line` (which may hold several, one after the other); 0 when there
// is none. Looks at no more than 100 bytes.
std::size_t LinePrefixLength(absl::string_view line);

// The text under an OOM message, as the family parsers read it: white space, line prefixes (#, >, | and those
// above), terminal colours and escaped line ends are squeezed out, so that a message reads the same
// however it was wrapped. A position in the squeezed text maps back to the byte it came from.
//
//   "# CUDA out of memory.\n# Tried to allocate 2.00 GiB"  ->  "CUDAoutofmemory.Triedtoallocate2.00GiB"
//
// One blank is kept where two digits would otherwise join. Not thread-safe to change; a Cursor is a cheap value.

inline bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }
inline bool IsBlank(char c) { return absl::ascii_isspace(static_cast<unsigned char>(c)); }

class SqueezedText {
 public:
  // `base` is the offset of `raw` in the whole text; `raw` must outlive this.
  SqueezedText(absl::string_view raw, std::size_t base);

  absl::string_view text() const { return squeezed_; }
  // The offset in the whole text of squeezed byte `at`; at == size gives the end of the raw text.
  std::size_t OffsetOf(std::size_t at) const {
    return at < offsets_.size() ? base_ + offsets_[at] : base_ + raw_.size();
  }
  // As it was, and where in it the squeezed byte `at` came from; the first squeezed byte that came from `raw_at` or
  // behind it.
  absl::string_view raw() const { return raw_; }
  std::size_t RawAt(std::size_t at) const { return at < offsets_.size() ? offsets_[at] : raw_.size(); }
  std::size_t AtRaw(std::size_t raw_at) const {
    return static_cast<std::size_t>(std::lower_bound(offsets_.begin(), offsets_.end(), raw_at) - offsets_.begin());
  }
  // The text of squeezed [begin, end) with a blank wherever something was left out.
  std::string Raw(std::size_t begin, std::size_t end) const;

 private:
  absl::string_view raw_;
  std::size_t base_;
  std::string squeezed_;
  std::vector<std::uint32_t> offsets_;
};

// A reading position in a squeezed text. Every Take* moves only when it succeeds.
class Cursor {
 public:
  Cursor(const SqueezedText& text, std::size_t at) : text_(&text), at_(at) {}

  std::size_t at() const { return at_; }
  void MoveTo(std::size_t at) { at_ = at; }
  // Whether the digit here continues a number begun before.
  bool InsideNumber() const;
  bool AtEnd() const { return at_ >= text_->text().size(); }
  absl::string_view Rest() const { return text_->text().substr(at_); }
  bool Sees(absl::string_view literal) const { return Rest().substr(0, literal.size()) == literal; }
  // Whether the text ends inside `literal`: what is left is a beginning of it.
  bool EndsInside(absl::string_view literal) const;
  bool Take(absl::string_view literal);
  // Moves behind the next `literal` that begins within `reach` bytes.
  bool SkipPast(absl::string_view literal, std::size_t reach);
  std::optional<std::int64_t> TakeInteger();
  // A number with a unit; a bare integer only where `unit_optional`.
  std::optional<Figure> TakeFigure(bool unit_optional = false);
  // A number whose unit stands elsewhere.
  std::optional<Figure> TakeNumber(std::uint64_t unit_bytes);

 private:
  const SqueezedText* text_;
  std::size_t at_;
};

// Of a unit as the texts name it; "MB10" is 10^6. 0: there is none of that name.
std::uint64_t BytesOfUnit(absl::string_view name);

// Figures of 2^56 bytes and more are wrapped counters or "not available", never memory: stored nowhere. A program may
// ask for more than any device has, but none holds more than kMostHeldBytes.
inline constexpr std::uint64_t kImpossibleBytes = std::uint64_t{1} << 56;
inline constexpr std::uint64_t kMostHeldBytes = std::uint64_t{1} << 46;

// Stores `figure` in `slot`, or names it in the message's notes when it cannot be true.
void StoreFigure(OomMessage& message, std::optional<Figure>& slot, const Figure& figure, absl::string_view name);

// Reads `words` <figure>, not farther than `reach`, into `slot`; says whether it was there.
bool TakeFigureAfter(Cursor& cursor, absl::string_view words, std::size_t reach, OomMessage& message,
                     std::optional<Figure>& slot, bool unit_optional = false);

// The family parsers behind FindOomMessages: each knows the words that give its messages away (anchors) and reads one
// message at an anchor. Private to the reader.

// What was found, beside its figures.
enum class FindingKind : std::uint8_t {
  kFailure,
  kWords,   // few words, which stand in code and prose too: not where they are quoted
  kWeak,    // words that other messages hold as well: dropped beside one
  kBeside,  // no failure: figures that a log has beside one of the same family
};

// One message found, in positions of the squeezed text: [begin, end).
struct FoundMessage {
  OomMessage message;
  std::size_t begin = 0;
  std::size_t end = 0;
  FindingKind kind = FindingKind::kFailure;
  bool is_row = false;  // of the table of oom_message_table.cc
};

// A message of a family that begins and, so far, ends at `at`.
inline FoundMessage Begin(absl::string_view family, std::size_t at) {
  FoundMessage out;
  out.message.family = std::string(family);
  out.begin = out.end = at;
  return out;
}

// Whether the words at `at` are somebody's code or prose.
bool IsQuotedAt(const SqueezedText& text, std::size_t at);

// Reads the message whose anchor begins at `at`; nullopt when the words there are no message.
using Parser = std::optional<FoundMessage> (*)(const SqueezedText& text, std::size_t at);

class Pattern;

struct Anchor {
  absl::string_view words;  // squeezed
  Parser parse;
  const Pattern* pattern = nullptr;  // in place of a parser
};

// In order of preference where two begin at the same place.
const std::vector<Anchor>& OurAnchors();
const std::vector<Anchor>& TorchAnchors();
const std::vector<Anchor>& FrameworkAnchors();
const std::vector<Anchor>& LibraryAnchors();
const std::vector<Anchor>& BesideAnchors();

// Whether a finding of this family is a table of the devices' memory: its figures are `device_used.N` and their like.
inline bool IsDeviceTable(absl::string_view family) { return family == "nvidia-smi" || family == "rocm-smi"; }

// Joins what belongs to one failure: an allocator's warnings to the message they announce, figures beside a message to
// it, and what several parts of one program say of it. `findings` are in the text's order.
std::vector<OomMessage> JoinFindings(std::vector<FoundMessage> findings);

// Refusals after each of which the program went on, in one message with their range. `messages` are of `text`, with
// their tracebacks.
std::vector<OomMessage> JoinSeries(absl::string_view text, std::vector<OomMessage> messages);

// Where a failure was raised, as `text` tells it behind the message: a traceback that begins there, that of a line of
// JSON, a stack trace of Julia, the place that NVHPC's runtime names. Outermost first.
std::vector<TracebackLine> TracebackBehind(absl::string_view text, const OomMessage& message);

// The first line that says in words of its own that the memory of a device ran out.
std::optional<OomMessage> InOwnWords(absl::string_view text);

// Whether what stands at `offset` is a line of a diff: source that was changed, and nothing that a program said.
bool IsInDiff(absl::string_view text, std::size_t offset);

}  // namespace ashlar::formats::oom

#endif  // ASHLAR_ANALYZER_FORMATS_OOM_OOM_PARSER_H_
