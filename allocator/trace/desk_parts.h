// The events of a chunk's desks, put into one order as the last part is read (codec_format.h). Private to the codec.
// Not thread-safe.
//
//   DeskParts parts;
//   parts.Begin();                         // another desk's part
//   parts.Add(event, 4);                   // false: its turn lies before the last one's
//   parts.MoveBefore(5, trace);            // all of turns before 5, behind what is in the trace
//   parts.MoveRest(trace);
//
// Where a recording has parts its times never go back: each desk reads the clock now and then, so an event's time may
// be older than that of an event which happened before it elsewhere, and becomes that one's.
#ifndef ASHLAR_ALLOCATOR_TRACE_DESK_PARTS_H_
#define ASHLAR_ALLOCATOR_TRACE_DESK_PARTS_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "allocator/trace/event.h"

namespace ashlar::trace::codec {

class DeskParts {
 public:
  bool IsEmpty() const { return parts_.empty(); }
  void Begin();
  // In the part that was begun last.
  bool Add(const Event& event, std::uint64_t turn);
  void MoveBefore(std::uint64_t turn, std::vector<Event>& trace);
  // The parts are gone afterwards.
  void MoveRest(std::vector<Event>& trace);
  // Of what comes next in the recording, to be asked for all of it; kNoTime stays.
  std::int64_t LaterTime(std::int64_t time_us);

 private:
  struct Entry {
    std::uint64_t turn = 0;
    Event event;
  };
  struct Part {
    std::vector<Entry> entries;
    std::size_t next = 0;

    bool HasNext() const { return next < entries.size(); }
    const Entry& Next() const { return entries[next]; }
  };
  // Where a part stands, in the order in which parts are moved.
  struct Head {
    std::uint64_t turn = 0;
    std::int64_t time_us = 0;
    std::size_t index = 0;  // in parts_
    auto operator<=>(const Head&) const = default;
  };
  Head HeadOf(std::size_t index) const;
  // Finds where each part stands, unless that is known; all parts are there.
  void Order();
  void Move(Part& part, std::vector<Event>& trace);

  std::vector<Part> parts_;
  std::priority_queue<Head, std::vector<Head>, std::greater<>> heads_;  // of the parts that have a next event
  bool is_ordered_ = false;                                             // the heads are those of all parts
  bool had_parts_ = false;                                              // the recording, so far
  std::int64_t time_us_ = kNoTime;                                      // the latest so far
};

}  // namespace ashlar::trace::codec

#endif  // ASHLAR_ALLOCATOR_TRACE_DESK_PARTS_H_
