// Tells a program's function of the events of an allocator, in the words of include/ashlar/events.h.
//
//   ToldEvents told([&](const AllocatorEvent& event) { seen.push_back(event); });
//   allocator.SetObserver(&told);
//
// It has no state of its own. Threads: the allocator's rule for sinks, one call at a time.
#ifndef ASHLAR_ALLOCATOR_CORE_TOLD_EVENTS_H_
#define ASHLAR_ALLOCATOR_CORE_TOLD_EVENTS_H_

#include <cstdint>
#include <utility>

#include "allocator/base/units.h"
#include "allocator/trace/event.h"
#include "allocator/trace/sink.h"
#include "ashlar/events.h"

namespace ashlar::core {

class ToldEvents final : public trace::EventSink {
 public:
  // `observer` is not empty, and must not throw.
  explicit ToldEvents(EventObserver observer) : observer_(std::move(observer)) {}

  void OnEvent(const trace::Event& event, std::uint64_t) override {
    observer_({.kind = static_cast<EventKind>(event.action),
               .address = event.address,
               .size_bytes = event.size_bytes,
               .stream = event.stream,
               .pool = event.pool.value_or(PoolId{})});
  }
  void OnPages(const trace::PagesOfSleep& pages) override {
    observer_({.kind = pages.are_there ? EventKind::kPagesWoken : EventKind::kPagesSlept,
               .address = pages.address,
               .size_bytes = pages.size_bytes,
               .stream = pages.stream,
               .pool = pages.pool});
  }

 private:
  // The kinds are the actions, by number, as far as an allocator makes them.
  static_assert(static_cast<int>(EventKind::kAlloc) == static_cast<int>(trace::Action::kAlloc));
  static_assert(static_cast<int>(EventKind::kOutOfMemory) == static_cast<int>(trace::Action::kOom));

  const EventObserver observer_;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_TOLD_EVENTS_H_
