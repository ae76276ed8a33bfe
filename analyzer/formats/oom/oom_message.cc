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
#include "analyzer/formats/oom/oom_pattern.h"
#include "analyzer/formats/utf8.h"

namespace ashlar::formats {
namespace {

using oom::Anchor;
using oom::FoundMessage;
using oom::SqueezedText;

// A long text is read in windows that overlap, so that memory stays bounded; a message is far shorter than the overlap.
constexpr std::size_t kWindowBytes = std::size_t{1} << 20;
constexpr std::size_t kOverlapBytes = std::size_t{1} << 14;
constexpr std::size_t kLookBackBytes = 512;
constexpr std::size_t kChainReachBytes = std::size_t{1} << 17;

struct Candidate {
  std::size_t at;
  const Anchor* anchor;
};

// Every family's anchors by their first two bytes, in order of preference, so that one pass over a text sees them all.
class AnchorIndex {
 public:
  AnchorIndex() {
    Add(oom::OurAnchors());
    for (const oom::Pattern& pattern : oom::Patterns()) of_patterns_.push_back({pattern.anchor(), nullptr, &pattern});
    Add(of_patterns_);
    Add(oom::TorchAnchors());
    Add(oom::FrameworkAnchors());
    Add(oom::LibraryAnchors());
    Add(oom::BesideAnchors());
  }

  std::vector<Candidate> Find(absl::string_view squeezed) const {
    std::vector<Candidate> out;
    for (std::size_t at = 0; at + 1 < squeezed.size(); ++at) {
      const std::uint16_t bucket = bucket_of_[Key(squeezed.substr(at, 2))];
      if (bucket == 0) continue;
      for (const Anchor* anchor : buckets_[bucket]) {
        if (absl::StartsWith(squeezed.substr(at), anchor->words)) out.push_back({at, anchor});
      }
    }
    return out;
  }

 private:
  static std::size_t Key(absl::string_view two) {
    return static_cast<std::size_t>(static_cast<unsigned char>(two[0])) << 8 | static_cast<unsigned char>(two[1]);
  }
  void Add(const std::vector<Anchor>& anchors) {
    for (const Anchor& anchor : anchors) {
      std::uint16_t& bucket = bucket_of_[Key(anchor.words)];
      if (bucket == 0) {
        bucket = static_cast<std::uint16_t>(buckets_.size());
        buckets_.emplace_back();
      }
      buckets_[bucket].push_back(&anchor);
    }
  }

  std::vector<std::uint16_t> bucket_of_ = std::vector<std::uint16_t>(std::size_t{1} << 16);
  std::vector<std::vector<const Anchor*>> buckets_ = std::vector<std::vector<const Anchor*>>(1);  // the first: none
  std::vector<Anchor> of_patterns_;
};

// Certainly larger, whatever the rounding of the print hid.
bool CertainlyOver(const std::optional<Figure>& left, const std::optional<Figure>& right) {
  return left && right && left->low_bytes > right->high_bytes;
}

void DropImpossibleProcesses(OomMessage& message) {
  for (ProcessUse& process : message.processes) {
    if (!CertainlyOver(process.used, message.total)) continue;
    if (process.is_this_process && process.used->low_bytes / 2 < message.total->high_bytes) {
      message.AddNote(
          "process_over_total",
          absl::StrCat(process.used->printed, " in use by this process is more than the ", message.total->printed,
                       " the device has: the driver spilled into host memory (Windows, WSL)"));
      continue;
    }
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
                std::size_t& consumed, std::vector<FoundMessage>& out) {
  static const auto& anchors = *new AnchorIndex;
  const SqueezedText squeezed(text.substr(begin, end - begin), begin);
  for (const Candidate& candidate : anchors.Find(squeezed.text())) {
    const std::size_t offset = squeezed.OffsetOf(candidate.at);
    if (offset < from || offset >= until || offset < consumed) continue;
    const oom::Pattern* pattern = candidate.anchor->pattern;
    std::optional<FoundMessage> finding =
        pattern != nullptr ? pattern->Match(squeezed, candidate.at) : candidate.anchor->parse(squeezed, candidate.at);
    if (!finding) continue;
    OomMessage& message = finding->message;
    message.byte_offset = std::max(squeezed.OffsetOf(finding->begin), consumed);
    const std::size_t last = std::max(finding->end, candidate.at + candidate.anchor->words.size()) - 1;
    message.end_offset = squeezed.OffsetOf(last) + 1;
    DropContradictions(message);
    consumed = std::max(message.end_offset, offset + 1);
    out.push_back(*std::move(finding));
  }
}

// Of its own telling, else of the next that has one.
void AddTraceback(absl::string_view text, OomMessage& message) {
  bool is_mixed = false;
  message.traceback = TracebackBefore(text, message.byte_offset, &is_mixed);
  for (const std::size_t offset : message.told_again_at) {
    if (message.traceback.empty() && !is_mixed) message.traceback = TracebackBefore(text, offset, &is_mixed);
  }
  if (message.traceback.empty() && !is_mixed) {
    message.traceback = oom::TracebackBehind(text, message);
  }
  if (!is_mixed) return;
  message.AddNote("mixed_traceback",
                  "where it was raised is not told: two tracebacks are mixed (a second <module> of one file), and "
                  "nothing before their lines says which is whose");
}

// Whether Python says that what is raised at `end` came of what was raised before `begin`.
bool IsChained(absl::string_view text, std::size_t begin, std::size_t end) {
  if (begin == 0 || end <= begin || end - begin > kChainReachBytes) return false;
  const absl::string_view between = text.substr(begin, end - begin);
  return absl::StrContains(between, "During handling of the above exception") ||
         absl::StrContains(between, "was the direct cause of the following exception");
}

}  // namespace

std::string Figure::InWords() const {
  const bool is_bytes = printed.find_first_of("MGTKkP") == std::string::npos;
  return is_bytes && low_bytes == high_bytes && low_bytes >= kMiB ? FormatBytes(low_bytes) : printed;
}

const Figure* OomMessage::Detail(absl::string_view name) const {
  const auto found =
      std::find_if(details.begin(), details.end(), [&](const NamedFigure& detail) { return detail.name == name; });
  return found == details.end() ? nullptr : &found->figure;
}

const trace::Note* OomMessage::FindNote(absl::string_view name) const {
  const auto found =
      std::find_if(notes.begin(), notes.end(), [&](const trace::Note& note) { return note.name == name; });
  return found == notes.end() ? nullptr : &*found;
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
  std::vector<FoundMessage> found;
  std::size_t consumed = 0;
  for (std::size_t from = 0; from < text.size(); from += kWindowBytes) {
    const std::size_t begin = from > kLookBackBytes ? from - kLookBackBytes : 0;
    const std::size_t until = std::min(text.size(), from + kWindowBytes);
    const std::size_t end = std::min(text.size(), until + kOverlapBytes);
    ReadWindow(text, begin, end, from, until, consumed, found);
    GiveBackPages(text.substr(begin, until - begin));
  }
  std::erase_if(found,
                [text](const FoundMessage& finding) { return oom::IsInDiff(text, finding.message.byte_offset); });
  std::vector<OomMessage> out = oom::JoinFindings(std::move(found));
  PagesBehind behind(text.data());
  std::size_t end_before = 0;
  for (OomMessage& message : out) {
    AddTraceback(text, message);
    message.is_chained = IsChained(text, end_before, message.byte_offset);
    end_before = message.end_offset;
    behind.ReadTo(text.data() + message.byte_offset);
  }
  return oom::JoinSeries(text, std::move(out));
}

std::optional<OomMessage> FindInOwnWords(absl::string_view text) {
  std::optional<OomMessage> out = oom::InOwnWords(text);
  if (out.has_value()) AddTraceback(text, *out);
  return out;
}

bool LooksLikeOomMessage(absl::string_view text) { return !FindOomMessages(text).empty(); }

}  // namespace ashlar::formats
