// The time of a recording: microseconds since 1970 when it began, and from then on those that passed. So it never goes
// back. Threads: any may read it.
#ifndef ASHLAR_ALLOCATOR_CORE_RECORDING_CLOCK_H_
#define ASHLAR_ALLOCATOR_CORE_RECORDING_CLOCK_H_

#include <chrono>
#include <cstdint>

namespace ashlar::core {

// A clock is read for every so many events: an event's time is that of at most so many events before.
inline constexpr int kEventsOfOneTime = 64;

class RecordingClock {
 public:
  std::int64_t begin_us() const { return begin_us_; }
  std::int64_t NowMicroseconds() const {
    const auto passed = std::chrono::steady_clock::now() - begin_;
    return begin_us_ + std::chrono::duration_cast<std::chrono::microseconds>(passed).count();
  }

 private:
  const std::int64_t begin_us_ =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_RECORDING_CLOCK_H_
