#include "analyzer/readers/oom/oom_message.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/readers/given_pages.h"
#include "analyzer/readers/oom/oom_message_families.h"
#include "analyzer/readers/oom/oom_message_text.h"

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
