// The events of a trace, shared: a copy costs nothing and is the same events, until one of them is changed. So a
// snapshot, its timeline and its replay hold one array of what may be ten million events.
//
//   EventList trace = snapshot.device_traces[0];      // no copy
//   for (const Event& event : trace) Look(event);
//   trace.Mutable().pop_back();                       // its own events from here on
//
// Threads: as std::vector; copies that share events may be used from several threads.
#ifndef ASHLAR_ALLOCATOR_TRACE_EVENT_LIST_H_
#define ASHLAR_ALLOCATOR_TRACE_EVENT_LIST_H_

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "allocator/trace/event.h"

namespace ashlar::trace {

class EventList {
 public:
  using value_type = Event;
  using const_iterator = const Event*;
  using iterator = const_iterator;
  using size_type = std::size_t;

  EventList() = default;
  EventList(std::vector<Event> events)  // NOLINT: a vector is such a list
      : events_(std::make_shared<std::vector<Event>>(std::move(events))) {}
  EventList(std::initializer_list<Event> events) : EventList(std::vector<Event>(events)) {}
  template <typename Iterator>
  EventList(Iterator begin, Iterator end) : EventList(std::vector<Event>(begin, end)) {}

  operator const std::vector<Event>&() const { return Get(); }  // NOLINT: and the other way round

  bool empty() const { return Get().empty(); }
  std::size_t size() const { return Get().size(); }
  const Event* data() const { return Get().data(); }
  const Event* begin() const { return data(); }
  const Event* end() const { return data() + size(); }
  std::reverse_iterator<const Event*> rbegin() const { return std::make_reverse_iterator(end()); }
  std::reverse_iterator<const Event*> rend() const { return std::make_reverse_iterator(begin()); }
  const Event& operator[](std::size_t i) const { return Get()[i]; }
  const Event& at(std::size_t i) const { return Get().at(i); }
  const Event& front() const { return Get().front(); }
  const Event& back() const { return Get().back(); }

  // The events as this list's own: copied first where another list shares them.
  std::vector<Event>& Mutable() {
    if (events_ == nullptr || events_.use_count() > 1) events_ = std::make_shared<std::vector<Event>>(Get());
    return *events_;
  }
  void push_back(const Event& event) { Mutable().push_back(event); }
  void clear() { events_.reset(); }

  // Are they the same array?
  bool SharesWith(const EventList& other) const { return events_ != nullptr && events_ == other.events_; }

 private:
  static const std::vector<Event>& None() {
    static const auto* const kNone = new std::vector<Event>();
    return *kNone;
  }
  const std::vector<Event>& Get() const { return events_ != nullptr ? *events_ : None(); }

  std::shared_ptr<std::vector<Event>> events_;
};

}  // namespace ashlar::trace

#endif  // ASHLAR_ALLOCATOR_TRACE_EVENT_LIST_H_
