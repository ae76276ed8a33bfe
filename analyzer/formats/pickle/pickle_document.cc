#include "analyzer/formats/pickle/pickle_document.h"

#include "absl/base/casts.h"

namespace ashlar::formats::pickle {

absl::string_view KindName(Kind kind) {
  switch (kind) {
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return "a bool";
    case Kind::kInt:
    case Kind::kUint:
      return "a number";
    case Kind::kBigInt:
      return "a number beyond 64 bits";
    case Kind::kFloat:
      return "a float";
    case Kind::kString:
      return "a string";
    case Kind::kBytes:
      return "bytes";
    case Kind::kTuple:
      return "a tuple";
    case Kind::kList:
      return "a list";
    case Kind::kDict:
      return "a dict";
    case Kind::kSet:
      return "a set";
  }
  return "something unknown";
}

double Value::AsDouble() const { return absl::bit_cast<double>(payload_); }

std::size_t Document::Size(const Value& value) const {
  has_missed_items_ = has_missed_items_ || IsGone(value);
  const std::uint32_t size = containers_[value.payload()].size;
  return value.kind() == Kind::kDict ? size / 2 : size;
}

void Document::Reserve(std::uint64_t pickle_bytes) {
  items_.reserve(pickle_bytes / 8);
  containers_.reserve(pickle_bytes / 128);
}

std::uint64_t Document::AddText(absl::string_view text) {
  texts_.push_back(text);
  return texts_.size() - 1;
}

std::uint64_t Document::AddContainer() {
  containers_.emplace_back();
  return containers_.size() - 1;
}

void Document::Extend(std::uint64_t container, const Value* begin, const Value* end) {
  const auto count = static_cast<std::uint32_t>(end - begin);
  if (count == 0) return;
  const std::uint64_t start = items_.size();
  items_.insert(items_.end(), begin, end);
  Container& c = containers_[container];
  Chunk& last = c.last == kNoChunk ? c.first : chunks_[c.last];
  c.size += count;
  if (last.count == 0) last.begin = start;
  if (last.begin + last.count == start) {
    last.count += count;
    return;
  }
  const auto next = static_cast<std::uint32_t>(chunks_.size());
  last.next = next;
  c.last = next;
  chunks_.push_back(Chunk{start, count, kNoChunk});
}

void Document::CutBack(const Place& to) {
  items_.resize(to.items);
  chunks_.resize(to.chunks);
  containers_.resize(to.containers);
  texts_.resize(to.texts);
}

void Document::Finish(const Value& root, std::uint64_t trailing_bytes) {
  root_ = root;
  trailing_bytes_ = trailing_bytes;
}

}  // namespace ashlar::formats::pickle
