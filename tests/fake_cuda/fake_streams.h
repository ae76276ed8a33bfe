// Keeps what the streams of the fake CUDA were given, in order, and how far each is. It is the plain oracle of what
// allocator/device/stream_clock.h does fast, and takes nothing but the standard library (libcuda.cc says why).
#ifndef ASHLAR_TESTS_FAKE_CUDA_FAKE_STREAMS_H_
#define ASHLAR_TESTS_FAKE_CUDA_FAKE_STREAMS_H_

#include <cstdint>
#include <vector>

#include "allocator/device/cuda_types.h"

namespace ashlar::device {

class FakeStreams {
 public:
  // A point in the work of a stream, counted over all streams. 0: everything before it is done.
  using Point = std::uint64_t;

  Point Record(CudaStream stream) { return Add(stream, 0); }
  void Wait(CudaStream stream, Point awaited) { Add(stream, awaited); }

  bool IsDone(Point point) const { return point == 0 || work_[point - 1].is_done; }

  // Its stream has come to the point, and what the stream waited for on the way is done as well.
  void Finish(Point point) {
    if (IsDone(point)) return;
    const CudaStream stream = work_[point - 1].stream;
    for (Point at = point; at > 0; --at) {
      Work& work = work_[at - 1];
      if (work.stream != stream || work.is_done) continue;
      work.is_done = true;
      Finish(work.awaited);
    }
  }
  void FinishStream(CudaStream stream) { Finish(Record(stream)); }
  void FinishAll() {
    for (Work& work : work_) work.is_done = true;
  }

 private:
  struct Work {
    CudaStream stream = nullptr;
    Point awaited = 0;
    bool is_done = false;
  };
  Point Add(CudaStream stream, Point awaited) {
    work_.push_back({stream, awaited, false});
    return work_.size();
  }

  std::vector<Work> work_;
};

}  // namespace ashlar::device

#endif  // ASHLAR_TESTS_FAKE_CUDA_FAKE_STREAMS_H_
