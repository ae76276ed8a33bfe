#include "analyzer/readers/torch/torch_stream.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "allocator/trace/trace_tail.h"

namespace ashlar::readers {

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

}  // namespace ashlar::readers
