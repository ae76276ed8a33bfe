// Of a program's requests those that may be held, the last, and before them those of what was alive then: a replay of
// them serves what the program held, and then what it did. The others are summed.
//
//   a 1 512   a 2 1024   f 1 | f 2   a 3 256        held: the last two requests, and before them "a 2 1024"
//
//   RequestWindow window(/*max_events=*/1000);
//   window.Add(op);                                  // again and again; ids dense, each freed before it is used anew
//   trace::RequestTrace trace = window.Finish({.id_count = count});
//
// What is dropped takes no memory, but where it is alive. Not thread-safe.
#ifndef ASHLAR_ALLOCATOR_TRACE_REQUEST_WINDOW_H_
#define ASHLAR_ALLOCATOR_TRACE_REQUEST_WINDOW_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "allocator/trace/request.h"

namespace ashlar::trace {

// What is alive after requests: what allocated it, and the streams that use it.
class LiveRequests {
 public:
  void Add(const Op& op);
  std::vector<Op> InOrder() const;
  std::uint64_t bytes() const { return bytes_; }
  std::size_t count() const { return live_.size(); }

 private:
  struct Numbered {
    std::uint64_t number = 0;
    Op op;
  };
  struct Live {
    Numbered allocated;
    std::vector<Numbered> used = {};
  };
  absl::flat_hash_map<std::uint32_t, Live> live_;  // by id
  std::uint64_t added_ = 0;
  std::uint64_t bytes_ = 0;
};

class RequestWindow {
 public:
  // An allocation makes one event at least, a free two: as many requests are held as make so many. 0: all.
  explicit RequestWindow(std::uint64_t max_events) : max_events_(max_events) {}

  // Room for so many, or for as many as are held.
  void Reserve(std::size_t requests);
  void Add(const Op& op) {
    requests_.push_back(op);
    events_ += EventsOf(op);
    if (max_events_ != 0 && events_ > max_events_ + max_events_ / 4) [[unlikely]]
      DropOldest();
  }
  // `about`: the trace but for its requests. Where some were dropped its ids are numbered anew, and its source and
  // notes say so. Leaves the window empty.
  RequestTrace Finish(RequestTrace about);

 private:
  static std::uint64_t EventsOf(const Op& op) { return op.kind == OpKind::kFree ? 2 : 1; }
  void DropOldest();
  void Drop(const Op& op);

  std::uint64_t max_events_;
  std::uint64_t events_ = 0;  // of those that are held
  std::vector<Op> requests_;
  LiveRequests before_;  // what is alive where they begin
  std::uint64_t dropped_ = 0;
  std::uint64_t peak_bytes_ = 0;    // of what was alive, up to there
  std::uint64_t peak_request_ = 0;  // the first that reached it
};

}  // namespace ashlar::trace

#endif  // ASHLAR_ALLOCATOR_TRACE_REQUEST_WINDOW_H_
