// A pickle as plain data: 16-byte values, children in one flat array, texts as views into the input.
//
// A container is a list of chunks of the item array (a pickler writes a long list in batches), walked by ItemCursor:
//
//   items    | a b c | x y | d e |         list L = {a b c d e}: first chunk {0, 3}, then chunk {5, 2}
//
// A shared or cyclic reference is the same container index again, never a copy; nothing here recurses. Values and
// the document are immutable once read and may be used from several threads. The input must outlive the document.
#ifndef ASHLAR_ANALYZER_FORMATS_PICKLE_PICKLE_DOCUMENT_H_
#define ASHLAR_ANALYZER_FORMATS_PICKLE_PICKLE_DOCUMENT_H_

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace ashlar::formats::pickle {

enum class Kind : std::uint8_t {
  kNone,
  kBool,
  kInt,     // fits std::int64_t
  kUint,    // above that, fits std::uint64_t
  kBigInt,  // fits neither; its value is not kept
  kFloat,
  kString,
  kBytes,
  kTuple,
  kList,
  kDict,
  kSet,
};

// "a number", "a list", ... for messages.
absl::string_view KindName(Kind kind);

class Value {
 public:
  Value() = default;
  Value(Kind kind, std::uint64_t offset, std::uint64_t payload)
      : tag_(offset << 8 | static_cast<std::uint64_t>(kind)), payload_(payload) {}

  Kind kind() const { return static_cast<Kind>(tag_ & 0xff); }
  // Where in the input the value was made.
  std::uint64_t offset() const { return tag_ >> 8; }
  // Of kBool, kInt (two's complement), kUint: the value. Of kFloat: its bits. Else: an index into the document,
  // the same for every reference to one object.
  std::uint64_t payload() const { return payload_; }

  bool IsContainer() const { return kind() >= Kind::kTuple; }
  double AsDouble() const;

 private:
  std::uint64_t tag_ = 0;
  std::uint64_t payload_ = 0;
};

struct Chunk {
  std::uint64_t begin = 0;
  std::uint32_t count = 0;
  std::uint32_t next = std::numeric_limits<std::uint32_t>::max();
};
inline constexpr std::uint32_t kNoChunk = std::numeric_limits<std::uint32_t>::max();
// In Container::last: its items were handed out and are gone (pickle.h).
inline constexpr std::uint32_t kHandedOut = kNoChunk - 1;
// The same of the list that they were handed out of.
inline constexpr std::uint32_t kStreamedList = kNoChunk - 2;

struct Container {
  Chunk first;
  std::uint32_t last = kNoChunk;  // the last chunk, kNoChunk while `first` is
  std::uint32_t size = 0;         // items; a dict counts keys and values
};

// Walks the items of a container in order; of a dict: key, value, key, value, always in pairs.
class ItemCursor {
 public:
  ItemCursor(const Value* items, const Chunk* chunks, Chunk first)
      : items_(items), chunks_(chunks), at_(items + first.begin), end_(at_ + first.count), next_(first.next) {}

  // nullptr after the last.
  const Value* Next() {
    while (at_ == end_) {
      if (next_ == kNoChunk) return nullptr;
      const Chunk& chunk = chunks_[next_];
      at_ = items_ + chunk.begin;
      end_ = at_ + chunk.count;
      next_ = chunk.next;
    }
    return at_++;
  }

 private:
  const Value* items_;
  const Chunk* chunks_;
  const Value* at_;
  const Value* end_;
  std::uint32_t next_;
};

class Document {
 public:
  const Value& root() const { return root_; }
  // Bytes after the pickle's STOP, which nothing read.
  std::uint64_t trailing_bytes() const { return trailing_bytes_; }

  // Of kString and kBytes.
  absl::string_view Text(const Value& value) const { return texts_[value.payload()]; }
  // Of a container. Size counts list items, or a dict's pairs.
  std::size_t Size(const Value& value) const;
  ItemCursor Items(const Value& value) const {
    const Container& container = containers_[value.payload()];
    has_missed_items_ = has_missed_items_ || IsGone(container);
    return ItemCursor(items_.data(), chunks_.data(), container.first);
  }

  std::size_t text_count() const { return texts_.size(); }
  std::size_t container_count() const { return containers_.size(); }
  // All items of all containers. A walk that visits more than this met a shared list more than once.
  std::size_t item_count() const { return items_.size(); }

  // For the reader. Room for what snapshots of that many bytes hold, about twice the bytes.
  void Reserve(std::uint64_t pickle_bytes);
  std::uint64_t AddText(absl::string_view text);
  std::uint64_t AddContainer();
  // Appends the items of the stack range to a container.
  void Extend(std::uint64_t container, const Value* begin, const Value* end);
  void Finish(const Value& root, std::uint64_t trailing_bytes);

  // For the reader of streamed lists. What is behind a place is dropped as a whole.
  struct Place {
    std::size_t items = 0, chunks = 0, containers = 0, texts = 0;
  };
  Place End() const { return {items_.size(), chunks_.size(), containers_.size(), texts_.size()}; }
  void CutBack(const Place& to);
  void MarkGone(std::uint64_t container, std::uint32_t how) { containers_[container] = {Chunk{}, how, 0}; }
  // The container becomes that one; returns what it was.
  Container Swap(std::uint64_t container, const Container& with) { return std::exchange(containers_[container], with); }
  bool IsEmpty(const Value& value) const { return containers_[value.payload()].size == 0 && !IsGone(value); }
  bool IsStreamedList(const Value& value) const { return containers_[value.payload()].last == kStreamedList; }
  bool IsGone(const Value& value) const { return IsGone(containers_[value.payload()]); }
  // Somebody asked for items that are gone: what was read is not the whole of the file.
  bool has_missed_items() const { return has_missed_items_; }

 private:
  std::vector<Value> items_;
  std::vector<Chunk> chunks_;
  std::vector<Container> containers_;
  std::vector<absl::string_view> texts_;
  static bool IsGone(const Container& container) {
    return container.last >= kStreamedList && container.last != kNoChunk;
  }

  Value root_;
  std::uint64_t trailing_bytes_ = 0;
  mutable bool has_missed_items_ = false;  // stays false where nothing was streamed: the document is then immutable
};

}  // namespace ashlar::formats::pickle

#endif  // ASHLAR_ANALYZER_FORMATS_PICKLE_PICKLE_DOCUMENT_H_
