#include "analyzer/formats/oom/oom_pattern.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace ashlar::formats::oom {
namespace {

constexpr std::size_t kMostTextBytes = 200;  // of a {$name}

std::string SqueezedWords(absl::string_view words) {
  std::string out;
  std::copy_if(words.begin(), words.end(), std::back_inserter(out), [](char c) { return !IsBlank(c); });
  return out;
}

std::optional<Figure>* FieldOf(absl::string_view name, OomMessage& message) {
  if (name == "tried") return &message.tried;
  if (name == "free") return &message.free;
  if (name == "total") return &message.total;
  if (name == "limit") return &message.limit;
  if (name == "reserved") return &message.reserved;
  if (name == "allocated") return &message.allocated;
  if (name == "unallocated_reserved") return &message.unallocated_reserved;
  return nullptr;
}

}  // namespace

Pattern::Pattern(const MessageRow& row) : row_(row) {
  absl::string_view rest = row.pattern;
  while (!rest.empty()) {
    const std::size_t open = rest.find('{');
    if (std::string words = SqueezedWords(rest.substr(0, open)); !words.empty()) {
      elements_.push_back({'w', std::move(words)});
    }
    if (open == absl::string_view::npos) break;
    const std::size_t close = rest.find('}', open);
    absl::string_view slot = rest.substr(open + 1, close - open - 1);
    rest.remove_prefix(close + 1);
    Element element{'f', std::string(slot.substr(0, slot.find(':')))};
    if (element.words.size() < slot.size()) element.unit_bytes = BytesOfUnit(slot.substr(element.words.size() + 1));
    if (slot == "?") {
      element.kind = '?';
    } else if (slot == "device") {
      element.kind = 'd';
    } else if (absl::StrContains("#$*", slot.substr(0, 1))) {
      element.kind = slot[0];
      element.words = std::string(slot.substr(1));
      if (element.kind == '*' && !absl::SimpleAtoi(element.words, &element.reach)) element.reach = 0;
    }
    elements_.push_back(std::move(element));
  }
}

// A detail may be negative ("-0.58GiB" left for a cache): its name says so.
bool Pattern::TakeFigure(const Element& element, Cursor& cursor, OomMessage& message) const {
  const std::string& name = element.words;
  const bool is_negative = cursor.Take("-");
  const std::optional<Figure> figure =
      element.unit_bytes > 0 ? cursor.TakeNumber(element.unit_bytes) : cursor.TakeFigure(/*unit_optional=*/true);
  if (!figure) return false;
  std::optional<Figure>* field = FieldOf(name, message);
  if (field != nullptr && name == "limit" && figure->low_bytes >= kImpossibleBytes) {
    message.AddNote("no_limit", "the limit printed is the largest number there is: no limit is set");
  } else if (field != nullptr) {
    StoreFigure(message, *field, *figure, name);
  } else {
    std::optional<Figure> detail;
    StoreFigure(message, detail, *figure, name);
    if (detail) message.details.push_back({is_negative ? absl::StrCat(name, "_missing") : name, *detail});
  }
  return true;
}

bool Pattern::Take(const Element& element, std::size_t index, Cursor& cursor, const SqueezedText& text,
                   OomMessage& message) const {
  const std::string& next = index + 1 < elements_.size() ? elements_[index + 1].words : element.words;
  switch (element.kind) {
    case 'w':
      return cursor.Take(element.words);
    case 'd': {
      const std::optional<std::int64_t> device = cursor.TakeInteger();
      if (!device || *device > 1'000'000) return false;
      message.device = static_cast<int>(*device);
      return true;
    }
    case '#': {
      const std::optional<std::int64_t> count = cursor.TakeInteger();
      if (!count) return false;
      message.notes.push_back(
          {element.words, absl::StrCat("told by the message: ", element.words), static_cast<std::uint64_t>(*count)});
      std::replace(message.notes.back().message.begin(), message.notes.back().message.end(), '_', ' ');
      return true;
    }
    case '$': {
      const std::size_t length = cursor.Rest().substr(0, kMostTextBytes).find(next);
      if (length == absl::string_view::npos) return false;
      message.AddNote(element.words, absl::StrCat(element.words, ": ", text.Raw(cursor.at(), cursor.at() + length)));
      cursor.MoveTo(cursor.at() + length);
      return true;
    }
    case '*': {
      const std::size_t skipped = cursor.Rest().substr(0, element.reach + next.size()).find(next);
      if (skipped == absl::string_view::npos) return false;
      cursor.MoveTo(cursor.at() + skipped);
      return true;
    }
    default:
      return TakeFigure(element, cursor, message);
  }
}

std::optional<FoundMessage> Pattern::Match(const SqueezedText& text, std::size_t at) const {
  const bool is_of_words = row_.kind == FindingKind::kWords || row_.kind == FindingKind::kWeak;
  const bool is_code = at > 0 && absl::StrContains("=!(,", text.text()[at - 1]);
  if (is_of_words && IsQuotedAt(text, at)) return std::nullopt;
  if (row_.kind == FindingKind::kWeak && is_code) return std::nullopt;
  FoundMessage finding = Begin(row_.family, at);
  finding.kind = row_.kind;
  finding.is_row = true;
  Cursor cursor(text, at);
  bool is_optional = false;
  for (std::size_t i = 0; i < elements_.size(); ++i) {
    if (elements_[i].kind == '?') {
      is_optional = true;
      continue;
    }
    Cursor look = cursor;
    if (Take(elements_[i], i, look, text, finding.message)) {
      // What was passed over counts once the words behind it are there.
      cursor = look;
      if (elements_[i].kind != '*') finding.end = cursor.at();
    } else if (is_optional) {
      break;
    } else {
      return std::nullopt;
    }
  }
  if (!row_.note.empty()) finding.message.AddNote(row_.note, row_.note_text);
  return finding;
}

}  // namespace ashlar::formats::oom
