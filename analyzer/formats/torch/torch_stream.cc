#include "analyzer/formats/torch/torch_stream.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "allocator/trace/trace_tail.h"
#include "analyzer/formats/pickle/pickle_opcodes.h"
#include "analyzer/formats/torch/torch_record.h"
#include "analyzer/formats/utf8.h"

namespace ashlar::formats {
namespace {

using pickle::DirectItem;
using pickle::Kind;
using pickle::Value;
using trace::Action;

// What each entry has that says where and how much.
constexpr std::uint64_t kPlace = FieldSet({Field::kAction, Field::kAddr, Field::kSize, Field::kStream});

bool IsOfABlockOrSegment(Action action) { return action < Action::kOom; }

}  // namespace

bool EntryOpcodes::Decode(DirectItem& item) {
  if (!item.HasRoom()) return false;
  ++item.at;
  if (!item.Remember(Kind::kDict, item.begin) || *item.at++ != pickle::kMark) return false;
  event_ = {};
  event_.file_byte = static_cast<std::uint32_t>(std::min<std::uint64_t>(item.OffsetOf(item.begin), trace::kNoByte));
  seen_ = 0;
  label_ = {};
  is_new_stack_ = false;
  while (item.PassFrame() && item.HasRoom()) {
    if (*item.at == pickle::kSetItems) {
      ++item.at;
      return (seen_ & kPlace) == kPlace;
    }
    const Value* const key = item.Get();
    if (key == nullptr || !item.PassFrame() || !item.HasRoom()) return false;
    const Field field = context_.names.Of(*key);
    if (Has(field) || !DecodeValue(field, item)) return false;
    seen_ |= std::uint64_t{1} << static_cast<unsigned>(field);
  }
  return false;
}

bool EntryOpcodes::DecodeValue(Field field, DirectItem& item) {
  std::int64_t number = 0;
  switch (field) {
    case Field::kAction:
      return DecodeAction(item);
    case Field::kAddr:
      if (!item.Integer(&number)) return false;
      event_.address = static_cast<std::uint64_t>(number);
      return number >= 0;
    case Field::kSize:
      if (!item.Integer(&number)) return false;
      event_.size_bytes = static_cast<std::uint64_t>(number);
      return number >= 0;
    case Field::kStream:
      if (!item.Integer(&number)) return false;
      event_.stream = Stream{static_cast<std::uint64_t>(number)};
      return true;
    case Field::kTimeUs:
      return item.Integer(&event_.time_us);
    case Field::kUserMetadata:
      return DecodeText(item, &label_[0]);
    case Field::kInternalMetadata:
      return DecodeText(item, &label_[1]);
    case Field::kCompileContext:
      return DecodeText(item, &label_[2]);
    case Field::kPoolId:
      return DecodePool(item);
    case Field::kFrames:
      return DecodeFrames(item);
    default:
      return false;
  }
}

bool EntryOpcodes::DecodeAction(DirectItem& item) {
  const Value* const value = item.Get();
  if (value == nullptr || value->kind() != Kind::kString) return false;
  event_.action = trace::ParseAction(context_.document.Text(*value)).value_or(Action::kUnknown);
  return IsOfABlockOrSegment(event_.action);
}

bool EntryOpcodes::DecodeText(DirectItem& item, absl::string_view* out) {
  const std::uint8_t* const begin = item.at;
  if (*begin != pickle::kShortBinUnicode && *begin != pickle::kBinUnicode) {
    const Value* const value = item.Get();
    if (value == nullptr || value->kind() != Kind::kString) return false;
    *out = context_.document.Text(*value);
    return true;
  }
  const bool is_short = *begin == pickle::kShortBinUnicode;
  const std::size_t bytes = is_short ? begin[1] : DirectItem::U32(begin + 1);
  item.at += is_short ? 2 : 5;
  if (!item.HasRoom(static_cast<std::ptrdiff_t>(bytes) + DirectItem::kOpcodeBytes)) return false;
  *out = {reinterpret_cast<const char*>(item.at), bytes};
  item.at += bytes;
  return item.Remember(Kind::kString, begin, *out);
}

// A pair of numbers, one of them 0 and the other small: any such id has a place in an event.
bool EntryOpcodes::DecodePool(DirectItem& item) {
  constexpr std::int64_t kSmall = 1 << 16;
  const std::uint8_t* const begin = item.at;
  std::int64_t first = 0, second = 0;
  if (!item.Integer(&first) || !item.HasRoom() || !item.Integer(&second) || !item.HasRoom()) return false;
  if (*item.at++ != pickle::kTuple2 || !item.Remember(Kind::kTuple, begin)) return false;
  const bool is_plain = first >= 0 && second >= 0 && first < kSmall && second < kSmall && (first == 0 || second == 0);
  if (is_plain) event_.pool = PoolId{static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(second)};
  return is_plain;
}

bool EntryOpcodes::DecodeFrames(DirectItem& item) {
  const std::uint8_t* const begin = item.at;
  if (*begin != pickle::kEmptyList) {
    const Value* const list = item.Get();
    if (list == nullptr || list->kind() != Kind::kList) return false;
    return IsThere(*list) && context_.stacks.Read(*list, &event_.stack).ok();
  }
  ++item.at;
  if (!item.Remember(Kind::kList, begin) || !item.HasRoom()) return false;
  if (*item.at == pickle::kMark) return DecodeRun(item);
  // A key follows a list without frames: one frame alone is left to the machine.
  return true;
}

// What blocks have in common with entries is in the document, and known once it was read; what an entry had, is known.
bool EntryOpcodes::IsThere(const Value& container) const {
  return context_.stacks.Known(container.payload()) != 0 || !context_.document.IsGone(container);
}

// MARK, gets, APPENDS.
bool EntryOpcodes::DecodeRun(DirectItem& item) {
  ++item.at;
  if (runs_overwritten_ != item.memo.overwritten()) runs_.Clear();
  runs_overwritten_ = item.memo.overwritten();
  if (const StackRuns::Run* const run = runs_.Find(item.at, item.end); run != nullptr) {
    item.at += run->size;
    event_.stack = run->stack;
    return true;
  }
  run_ = item.at;
  frames_.clear();
  while (true) {
    if (!item.PassFrame() || !item.HasRoom()) return false;
    if (*item.at == pickle::kAppends) break;
    if (!DecodeFrame(item)) return false;
  }
  ++item.at;
  run_bytes_ = static_cast<std::size_t>(item.at - run_);
  is_new_stack_ = !frames_.empty();
  return true;
}

bool EntryOpcodes::DecodeFrame(DirectItem& item) {
  const Value* const frame = item.Get();
  if (frame == nullptr || frame->kind() != Kind::kDict) return false;
  return IsThere(*frame) && context_.stacks.ReadOne(*frame, &frames_.emplace_back()).ok();
}

const trace::Event& EntryOpcodes::Finish() {
  if (is_new_stack_) {
    event_.stack = context_.snapshot.stacks.InternStack(frames_);
    runs_.Add(run_, run_bytes_, event_.stack);
  }
  FinishLabel();
  trace::Traits& traits = context_.snapshot.traits;
  traits.has_time |= Has(Field::kTimeUs);
  traits.has_stacks |= event_.stack != trace::kNoStack;
  traits.has_pool_ids |= event_.pool.has_value();
  return event_;
}

void EntryOpcodes::FinishLabel() {
  if (!Has(Field::kCompileContext) && !Has(Field::kUserMetadata) && !Has(Field::kInternalMetadata)) return;
  context_.seen.has_compile_context |= Has(Field::kCompileContext);
  context_.snapshot.traits.has_labels |= Has(Field::kUserMetadata);
  if (!std::equal(label_.begin(), label_.end(), last_label_texts_.begin())) {
    for (std::size_t i = 0; i < label_.size(); ++i) last_label_texts_[i].assign(label_[i].data(), label_[i].size());
    last_label_ = InternLabel({.user_metadata = ToUtf8(label_[0]),
                               .internal_metadata = ToUtf8(label_[1]),
                               .compile_context = ToUtf8(label_[2])},
                              &context_);
  }
  event_.label = last_label_;
}

bool TraceStream::Take(std::uint64_t list, const pickle::Value* begin, const pickle::Value* end) {
  if (list == lists_.size()) lists_.push_back({begin[-1].payload(), {}, begin->offset()});
  if (list >= lists_.size()) return false;
  List& to = lists_[list];
  MakeRoom(to, static_cast<std::size_t>(end - begin), end[-1].offset());
  for (const pickle::Value* entry = begin; entry != end; ++entry) {
    trace::Event event;
    if (!ReadEntry(*entry, &context_, &event).ok()) return false;
    Keep(to, event);
  }
  return true;
}

bool TraceStream::TakeDecoded(std::uint64_t list, std::uint64_t container, pickle::DirectItem& item) {
  const trace::Event& event = entry_.Finish();
  // Its one list is that of its frames.
  for (std::size_t i = 0; i < item.put_count; ++i) {
    if (item.puts[i].kind == pickle::Kind::kList) item.puts[i].known = KnownList(event.stack);
  }
  if (list == lists_.size()) lists_.push_back({container, {}, item.OffsetOf(item.begin)});
  if (list >= lists_.size()) return false;
  MakeRoom(lists_[list], 1, item.OffsetOf(item.at));
  Keep(lists_[list], event);
  ++decoded_;
  return true;
}

void TraceStream::Keep(List& list, const trace::Event& event) const {
  if (limits_.max_events > 0) list.sums.Add(event);
  if (limits_.max_events == 0 || list.events.size() < limits_.max_events) return list.events.push_back(event);
  list.events[list.oldest] = event;
  list.oldest = list.oldest + 1 == list.events.size() ? 0 : list.oldest + 1;
}

void TraceStream::NoteWindow(const List& list, std::size_t device) {
  std::optional<trace::Note> note =
      trace::DescribeWindow(list.sums, list.events.size(), device, limits_.max_events, context_.snapshot);
  if (note.has_value()) context_.notes.Add(note->name, note->message, note->count);
}

// Room for half more than the rest of the file holds if it goes on so: what is not written to takes no memory, and
// moving them would take twice as much. The rest may be something else: no more than some GiB beyond twice as much.
void TraceStream::MakeRoom(List& list, std::size_t count, std::uint64_t byte) const {
  const bool is_full = limits_.max_events > 0 && list.events.capacity() >= limits_.max_events;
  if (is_full || list.events.size() + count <= list.events.capacity()) return;
  constexpr std::size_t kFirstEvents = 16 * 1024;
  constexpr std::size_t kMostGuessed = 32 * 1024 * 1024;
  const std::size_t needed = list.events.size() + count;
  std::size_t room = std::max(needed, 2 * list.events.capacity());
  if (needed >= kFirstEvents && byte > list.first_byte) {
    const double each = static_cast<double>(byte - list.first_byte) / static_cast<double>(needed);
    const double rest = static_cast<double>(file_bytes_ - std::min(file_bytes_, byte)) / each;
    const auto most = static_cast<double>(2 * needed + kMostGuessed);
    const double guess = std::min(1.5 * (static_cast<double>(needed) + rest), most);
    room = std::max(needed + needed / 4, static_cast<std::size_t>(guess));
  }
  if (limits_.max_events > 0) room = std::min<std::size_t>(room, limits_.max_events);
  list.events.reserve(room);
}

std::uint64_t TraceStream::KnownList(trace::StackId stack) {
  return stack == trace::kNoStack ? pickle::KnownEmpty(pickle::Kind::kList) : (std::uint64_t{stack} + 1) << 1 | 1;
}

// A frame or a list of frames: its number +1, and which of the two.
std::uint64_t TraceStream::Known(const pickle::Value& container) const {
  const bool is_list = container.kind() == pickle::Kind::kList;
  if (!is_list && container.kind() != pickle::Kind::kDict) return 0;
  const std::uint64_t known = context_.stacks.Known(container.payload());
  return known == 0 ? 0 : known << 1 | (is_list ? 1 : 0);
}

void TraceStream::CutBack(const pickle::Document::Place& to) {
  context_.names.CutBack(to.texts);
  context_.last_label_texts = TorchContext::kNoTexts;
  context_.stacks.CutBack(to.containers);
}

void TraceStream::Rename(std::uint64_t known, std::uint64_t container) {
  context_.stacks.SetKnown(container, static_cast<std::uint32_t>(known >> 1));
}

void TraceStream::Finish() {
  context_.stream = this;
  context_.visits_left = context_.document.item_count();
  context_.stacks.BeginAgain(std::exchange(context_.snapshot.stacks, {}));
}

trace::EventList TraceStream::TakeNext(const pickle::Value& list, std::size_t device) {
  if (next_ == lists_.size() || lists_[next_].container != list.payload()) {
    is_out_of_order_ = true;
    return {};
  }
  NoteWindow(lists_[next_], device);
  const auto oldest = static_cast<std::ptrdiff_t>(lists_[next_].oldest);
  std::vector<trace::Event> events = std::move(lists_[next_++].events);
  std::rotate(events.begin(), events.begin() + oldest, events.end());
  for (trace::Event& event : events) {
    if (event.stack != trace::kNoStack) event.stack = context_.stacks.Renumbered(event.stack);
  }
  return trace::EventList(std::move(events));
}

}  // namespace ashlar::formats
