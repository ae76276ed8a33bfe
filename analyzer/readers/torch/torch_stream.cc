#include "analyzer/readers/torch/torch_stream.h"

#include <algorithm>
#include <utility>

namespace ashlar::readers {

bool TraceStream::Take(std::uint64_t list, const pickle::Value* begin, const pickle::Value* end) {
  if (list == lists_.size()) lists_.push_back({begin[-1].payload(), {}, begin->offset()});
  if (list >= lists_.size()) return false;
  List& to = lists_[list];
  const auto count = static_cast<std::size_t>(end - begin);
  if (to.events.size() + count > to.events.capacity()) MakeRoom(to, count, end[-1].offset());
  for (const pickle::Value* entry = begin; entry != end; ++entry) {
    if (!ReadEntry(*entry, &context_, &to.events.emplace_back()).ok()) return false;
  }
  return true;
}

// Room for as many as the rest of the file holds if it goes on so: memory that is not written to is not taken.
void TraceStream::MakeRoom(List& list, std::size_t count, std::uint64_t byte) const {
  constexpr std::size_t kFirstEvents = 16 * 1024;
  const std::size_t needed = list.events.size() + count;
  std::size_t room = std::max(needed, 2 * list.events.capacity());
  if (needed >= kFirstEvents && byte > list.first_byte) {
    const double each = static_cast<double>(byte - list.first_byte) / static_cast<double>(needed);
    const double rest = static_cast<double>(file_bytes_ - std::min(file_bytes_, byte)) / each;
    room = std::max(needed + needed / 4, static_cast<std::size_t>(1.05 * (static_cast<double>(needed) + rest)));
  }
  list.events.reserve(room);
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

trace::EventList TraceStream::TakeNext(const pickle::Value& list) {
  if (next_ == lists_.size() || lists_[next_].container != list.payload()) {
    is_out_of_order_ = true;
    return {};
  }
  std::vector<trace::Event> events = std::move(lists_[next_++].events);
  for (trace::Event& event : events) {
    if (event.stack != trace::kNoStack) event.stack = context_.stacks.Renumbered(event.stack);
  }
  return trace::EventList(std::move(events));
}

}  // namespace ashlar::readers
