// The part of a pickle machine that hands items out as they are appended (pickle.h): it watches the stack, finds
// the lists, and drops what was taken. Private to the machine. Not thread-safe.
#ifndef ASHLAR_ANALYZER_FORMATS_PICKLE_PICKLE_HANDOUT_H_
#define ASHLAR_ANALYZER_FORMATS_PICKLE_PICKLE_HANDOUT_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "analyzer/formats/pickle/pickle.h"
#include "analyzer/formats/pickle/pickle_document.h"
#include "analyzer/formats/pickle/pickle_memo.h"

namespace ashlar::formats::pickle {

// The machine's stack: `marks` are the floors outside the newest mark, `floor` is where the newest stands.
struct MachineStack {
  std::vector<Value> values;
  std::vector<std::size_t> marks;
  std::size_t floor = 0;
};

class Handout {
 public:
  Handout(absl::string_view key, ItemSink& sink, Document& document, Memo& memo, MachineStack& stack)
      : key_(key), sink_(sink), document_(document), memo_(memo), stack_(stack) {}

  // Before a MARK: are the items of one of the lists to follow?
  void BeforeMark(std::uint64_t room);
  // Before a new dict: is it one of the items?
  bool IsItem() const { return is_open_ && stack_.marks.size() == open_marks_; }
  // Are there items enough on the stack to hand out, or none?
  bool IsFull() const { return stack_.values.size() - open_first_ >= kMostItems; }
  bool IsEmpty() const { return stack_.values.size() == open_first_; }
  // Takes items that the sink reads from their opcodes, as many as follow each other in a MiB, while the stack has
  // none. Returns where the next opcode is: at `item` where there was none of these.
  const std::uint8_t* TakeDirectly(DirectItem& item, std::uint64_t& room);
  // False for some items after one that it could not read: they may be all alike.
  bool MayTakeDirectly() { return waits_ == 0 || --waits_ == 0; }
  // Hands out and drops those on the stack. False: the file is to be read whole.
  bool HandOut(std::uint64_t& room);

  // After an APPENDS took its mark off: does what lies from `first` on belong to one of the lists?
  bool Owns(std::size_t first) const {
    return is_open_ && first == open_first_ && stack_.marks.size() + 1 == open_marks_;
  }
  bool Close(std::uint64_t& room);
  // A single item from `first` on is appended to one of the lists without a mark.
  bool OwnsSingle(std::size_t first) const;
  bool HandOutSingle(std::size_t first);

  // Any other opcode took the newest mark off. False: items before it are gone.
  bool AfterOtherMark();
  // A step cannot be taken, as what it needs may be gone.
  bool MayMiss() const { return is_open_ && handed_ > 0; }
  // May the container get more items, what is known of it apart?
  bool MayGrow(std::uint64_t container) const {
    return !document_.IsGone(Value(Kind::kList, 0, container)) && (!is_open_ || container >= base_.containers);
  }
  void NotePut(std::uint64_t index) {
    if (is_open_) puts_.push_back(index);
  }

 private:
  static constexpr std::size_t kMostItems = 512;
  static constexpr std::ptrdiff_t kMostDirectBytes = 1 << 20;

  bool IsOneOfTheLists(std::size_t position) const;
  bool Take(std::size_t first);
  void HideUnfinished(std::size_t end);
  void ShowUnfinished();
  std::uint64_t NumberOfList(std::uint64_t container);
  void TakePuts(const DirectItem& item, std::uint64_t& room);
  void Settle(std::uint64_t& room);
  void Drop(std::uint64_t& room);
  void Remember(std::uint64_t index, const Value& value, std::uint64_t known);

  absl::string_view key_;
  ItemSink& sink_;
  Document& document_;
  Memo& memo_;
  MachineStack& stack_;
  bool is_open_ = false;  // between the MARK before items and their APPENDS
  std::size_t open_first_ = 0;
  std::size_t open_marks_ = 0;
  std::uint64_t handed_ = 0;  // since then
  std::uint64_t list_ = 0;    // the number of the list that items are taken into directly
  Document::Place base_;      // where the items that are on the stack begin
  std::size_t base_kept_ = 0;
  std::uint64_t base_room_ = 0;
  std::uint32_t misses_ = 0;                                    // items in a row that the sink could not decode
  std::uint32_t waits_ = 0;                                     // items until it is asked again, 0: the next
  std::vector<std::pair<std::uint64_t, Container>> hidden_;     // by number
  std::vector<std::uint64_t> puts_;                             // memo indices written since then
  absl::flat_hash_map<std::uint64_t, std::uint64_t> lists_;     // by container
  absl::flat_hash_map<std::uint64_t, Memo::Slot> known_slots_;  // of what is known of a container
};

}  // namespace ashlar::formats::pickle

#endif  // ASHLAR_ANALYZER_FORMATS_PICKLE_PICKLE_HANDOUT_H_
