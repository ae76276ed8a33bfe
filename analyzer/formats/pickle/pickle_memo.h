// The memo of a pickle machine: the values that later opcodes refer to by index. A slot takes four bytes and what it
// refers to is kept once, as a snapshot of ten million entries remembers some thirty million objects, most of them for
// nothing.
//
//   memo.Put(0, value);
//   const Value* value = memo.Get(0);   // nullptr: never written, or dropped
#ifndef ASHLAR_ANALYZER_FORMATS_PICKLE_PICKLE_MEMO_H_
#define ASHLAR_ANALYZER_FORMATS_PICKLE_PICKLE_MEMO_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "analyzer/formats/pickle/pickle_document.h"

namespace ashlar::formats::pickle {

class Memo {
 public:
  // What a slot holds: nothing, a value that was dropped, or the kept value with that number less kFirstKept.
  using Slot = std::uint32_t;
  static constexpr Slot kUnwritten = 0;
  static constexpr Slot kDropped = 1;
  static constexpr Slot kFirstKept = 2;

  // Whether the value took room of its own: it takes that of the one it replaces where that was put since the last
  // Freeze.
  bool Put(std::uint64_t index, const Value& value) {
    Slot& slot = SlotAt(index);
    overwritten_ += slot != kUnwritten;
    if (slot >= kFirstKept && slot - kFirstKept >= frozen_) {
      kept_[slot - kFirstKept] = value;
      return false;
    }
    written_ += slot == kUnwritten;
    slot = Keep(value);
    return true;
  }
  const Value* Get(std::uint64_t index) const {
    const Slot slot = At(index);
    return slot < kFirstKept ? nullptr : &kept_[slot - kFirstKept];
  }
  // kUnwritten for any index that was never written.
  Slot At(std::uint64_t index) const {
    const std::uint64_t page = index / kPageSlots;
    return page < pages_.size() && pages_[page] != nullptr ? pages_[page][index % kPageSlots] : kUnwritten;
  }
  // Slots that were written, however often.
  std::uint64_t written() const { return written_; }
  // Puts into slots that had been written.
  std::uint64_t overwritten() const { return overwritten_; }

  // For the reader of streamed lists: values kept from a place on are dropped together, and their slots set anew.
  Slot Keep(const Value& value) {
    kept_.push_back(value);
    return static_cast<Slot>(kept_.size() - 1 + kFirstKept);
  }
  const Value& KeptAt(Slot slot) const { return kept_[slot - kFirstKept]; }
  std::size_t kept_count() const { return kept_.size(); }
  void CutBack(std::size_t kept_count) { kept_.resize(kept_count); }
  void Set(std::uint64_t index, Slot slot) { SlotAt(index) = slot; }
  // For a slot that was never written.
  void SetFirst(std::uint64_t index, Slot slot) {
    SlotAt(index) = slot;
    ++written_;
  }
  // What is kept now stays as it is: several slots may share it, or it is needed when others are dropped.
  void Freeze() { frozen_ = kept_.size(); }

 private:
  static constexpr std::uint64_t kPageSlots = 4096;

  Slot& SlotAt(std::uint64_t index) {
    const std::uint64_t page = index / kPageSlots;
    if (page >= pages_.size()) pages_.resize(page + 1);
    if (pages_[page] == nullptr) pages_[page] = std::make_unique<Slot[]>(kPageSlots);
    return pages_[page][index % kPageSlots];
  }

  std::vector<std::unique_ptr<Slot[]>> pages_;
  std::vector<Value> kept_;
  std::size_t frozen_ = 0;  // of those kept
  std::uint64_t written_ = 0;
  std::uint64_t overwritten_ = 0;
};

}  // namespace ashlar::formats::pickle

#endif  // ASHLAR_ANALYZER_FORMATS_PICKLE_PICKLE_MEMO_H_
