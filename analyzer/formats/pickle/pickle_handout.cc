#include "analyzer/formats/pickle/pickle_handout.h"

#include <algorithm>

namespace ashlar::formats::pickle {
namespace {

constexpr std::uint32_t kMostMisses = 3;  // then one item of four is tried

}  // namespace

// A pickler writes the list of lists and its items so (the root dict lies at 0), and leaves the inner MARK out where
// there is one list:
//
//   position   0      1 ...        k    k + 1          k + 2 ...
//              {} MARK key value ... key  [] (the lists) MARK [] [] [] MARK item item ...
bool Handout::IsOneOfTheLists(std::size_t position) const {
  const std::vector<Value>& values = stack_.values;
  if (position < 3 || values[position].kind() != Kind::kList || values[0].kind() != Kind::kDict) return false;
  const bool has_inner_mark = stack_.marks.size() == 2;
  const std::size_t lists = has_inner_mark ? stack_.floor - 1 : position - 1;
  if (stack_.marks.empty() || stack_.marks[0] != 0 || stack_.marks.size() > 2) return false;
  if ((has_inner_mark ? stack_.marks[1] : stack_.floor) != 1 || lists < 2 || lists >= position) return false;
  const Value& key = values[lists - 1];
  if (values[lists].kind() != Kind::kList || key.kind() != Kind::kString || lists % 2 != 0) return false;
  if (document_.Text(key) != key_) return false;
  return document_.IsStreamedList(values[position]) || document_.IsEmpty(values[position]);
}

void Handout::BeforeMark(std::uint64_t room) {
  if (is_open_ || stack_.values.empty() || !IsOneOfTheLists(stack_.values.size() - 1)) return;
  is_open_ = true;
  open_first_ = stack_.values.size();
  open_marks_ = stack_.marks.size() + 1;
  handed_ = 0;
  base_ = document_.End();
  base_kept_ = memo_.kept_count();
  memo_.Freeze();
  base_room_ = room;
  puts_.clear();
}

bool Handout::Take(std::size_t first) {
  const Value* const begin = stack_.values.data() + first;
  const Value* const end = stack_.values.data() + stack_.values.size();
  if (!std::all_of(begin, end, [](const Value& item) { return item.kind() == Kind::kDict; })) return false;
  const std::uint64_t list = NumberOfList(begin[-1].payload());
  handed_ += static_cast<std::uint64_t>(end - begin);
  HideUnfinished(first - 1);
  const bool is_taken = sink_.Take(list, begin, end);
  ShowUnfinished();
  return is_taken;
}

// What the lists lie in gets more items later: an item that refers to it is not to see what is there now.
void Handout::HideUnfinished(std::size_t end) {
  for (std::size_t i = 0; i < end; ++i) {
    const Value& value = stack_.values[i];
    if (!value.IsContainer() || document_.IsGone(value)) continue;
    hidden_.emplace_back(value.payload(), document_.Swap(value.payload(), {Chunk{}, kHandedOut, 0}));
  }
}

void Handout::ShowUnfinished() {
  for (const auto& [number, container] : hidden_) {
    const bool is_streamed = document_.IsStreamedList(Value(Kind::kList, 0, number));  // since then
    if (!is_streamed) document_.Swap(number, container);
  }
  hidden_.clear();
}

std::uint64_t Handout::NumberOfList(std::uint64_t container) {
  document_.MarkGone(container, kStreamedList);
  return lists_.try_emplace(container, lists_.size()).first->second;
}

const std::uint8_t* Handout::TakeDirectly(DirectItem& item, std::uint64_t& room) {
  const std::uint8_t* const begin = item.at;
  const std::uint64_t container = stack_.values[open_first_ - 1].payload();
  const std::uint8_t* next = begin;
  HideUnfinished(open_first_ - 1);
  while (next - begin < kMostDirectBytes && room >= DirectItem::kMostPuts && next != item.end && *next == kEmptyDict) {
    item.Begin(next);
    if (!sink_.Decode(item)) break;
    // The number is asked for only now: lists are numbered as they begin to have items.
    if (next == begin) list_ = NumberOfList(container);
    if (!sink_.TakeDecoded(list_, container, item)) break;
    ++handed_;
    TakePuts(item, room);
    next = item.at;
  }
  ShowUnfinished();
  misses_ = next == begin ? std::min(misses_ + 1, kMostMisses) : 0;
  waits_ = misses_ == 0 ? 0 : std::uint32_t{1} << (misses_ - 1);
  return next;
}

void Handout::TakePuts(const DirectItem& item, std::uint64_t& room) {
  bool has_kept = false;
  for (std::size_t i = 0; i < item.put_count; ++i) {
    const DirectItem::Put& put = item.puts[i];
    memo_.SetFirst(put.index, Memo::kDropped);
    if (put.kind == Kind::kString) {
      memo_.Set(put.index, memo_.Keep(Value(put.kind, put.offset, document_.AddText(put.text))));
      has_kept = true;
    } else if (put.known != 0) {
      Remember(put.index, Value(put.kind, put.offset, 0), put.known);
      has_kept = true;
    }
  }
  if (has_kept) Settle(room);
}

bool Handout::HandOut(std::uint64_t& room) {
  if (!Take(open_first_)) return false;
  stack_.values.resize(open_first_);
  Drop(room);
  return true;
}

bool Handout::Close(std::uint64_t& room) {
  const bool is_taken = stack_.values.size() == open_first_ || HandOut(room);
  is_open_ = false;
  return is_taken;
}

bool Handout::OwnsSingle(std::size_t first) const {
  return !is_open_ && stack_.values.size() == first + 1 && IsOneOfTheLists(first - 1) &&
         stack_.values[first].kind() == Kind::kDict;
}

// What the item is made of stays: it is one.
bool Handout::HandOutSingle(std::size_t first) {
  if (!Take(first)) return false;
  stack_.values.resize(first);
  return true;
}

bool Handout::AfterOtherMark() {
  if (!is_open_ || stack_.marks.size() + 1 != open_marks_) return true;
  is_open_ = false;
  return handed_ == 0;
}

// Everything since base_ goes, but for what later items may refer to by the memo.
void Handout::Drop(std::uint64_t& room) {
  struct Kept {
    std::uint64_t index = 0;
    Value value;
    absl::string_view text = {};
    std::uint64_t known = 0;
    bool is_new = false;
  };
  std::vector<Kept> kept;
  for (const std::uint64_t index : puts_) {
    const Value* const value = memo_.Get(index);
    if (value == nullptr) continue;
    Kept& keep = kept.emplace_back(Kept{index, *value});
    const bool is_text = value->kind() == Kind::kString || value->kind() == Kind::kBytes;
    keep.is_new = value->payload() >= (is_text ? base_.texts : base_.containers) && (is_text || value->IsContainer());
    if (keep.is_new && is_text) keep.text = document_.Text(*value);
    if (!keep.is_new || is_text) continue;
    keep.known = document_.IsEmpty(*value) ? KnownEmpty(value->kind()) : sink_.Known(*value);
  }
  document_.CutBack(base_);
  memo_.CutBack(base_kept_);
  sink_.CutBack(base_);
  room = base_room_;
  for (const Kept& keep : kept) {
    const bool is_container = keep.value.IsContainer();
    if (!keep.is_new) {
      memo_.Set(keep.index, memo_.Keep(keep.value));
    } else if (!is_container) {
      memo_.Set(keep.index, memo_.Keep(Value(keep.value.kind(), keep.value.offset(), document_.AddText(keep.text))));
    } else {
      Remember(keep.index, keep.value, keep.known);
    }
  }
  Settle(room);
  puts_.clear();
}

// What is kept since the items were dropped stays.
void Handout::Settle(std::uint64_t& room) {
  const Document::Place end = document_.End();
  const std::uint64_t spent =
      end.texts - base_.texts + end.containers - base_.containers + memo_.kept_count() - base_kept_;
  room -= std::min(room, spent);
  base_ = end;
  base_kept_ = memo_.kept_count();
  memo_.Freeze();
  base_room_ = room;
}

void Handout::Remember(std::uint64_t index, const Value& value, std::uint64_t known) {
  if (known == 0) return memo_.Set(index, Memo::kDropped);
  const auto [slot, is_new] = known_slots_.try_emplace(known, Memo::kDropped);
  if (is_new) {
    const std::uint64_t container = document_.AddContainer();
    if ((known & KnownEmpty({})) == 0) {
      document_.MarkGone(container, kHandedOut);
      sink_.Rename(known, container);
    }
    slot->second = memo_.Keep(Value(value.kind(), value.offset(), container));
  }
  memo_.Set(index, slot->second);
}

}  // namespace ashlar::formats::pickle
