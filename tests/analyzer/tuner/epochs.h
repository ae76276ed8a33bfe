// Shared by tests of the tuner: a program whose cure is known, and one that has none.
#ifndef ASHLAR_TESTS_ANALYZER_TUNER_EPOCHS_H_
#define ASHLAR_TESTS_ANALYZER_TUNER_EPOCHS_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "ashlar/allocator.h"
#include "ashlar/devices.h"
#include "ashlar/recorder.h"
#include "ashlar/tuner.h"

namespace ashlar::tests {

// An allocator with a ring, on a simulated device.
class EpochProgram {
 public:
  explicit EpochProgram(const char* conf = "", std::uint64_t capacity_bytes = 16 * kGiB)
      : device_(MakeSimulatedDevice({.capacity_bytes = capacity_bytes})),
        allocator_(device_.get(), *Options::Parse(conf)),
        recorder_(*Recorder::Ring(allocator_)) {}

  // Each request is larger than all before it and than what is cached: the cache grows by every one of them. Rounded up
  // to a power of two they are all of one size.
  void GrowingEpoch() {
    Epoch([](std::uint64_t i) { return (33 + i) * kMiB; });
  }
  // The next request fits where the last one was.
  void EvenEpoch() {
    Epoch([](std::uint64_t) { return 40 * kMiB; });
  }

  template <typename BytesOf>
  void Epoch(BytesOf bytes_of) {
    allocator_.EmptyCache();
    for (std::uint64_t i = 0; i < kRequests; ++i) {
      const absl::StatusOr<Block> small = allocator_.Allocate(300 * kKiB, Stream{0});
      const absl::StatusOr<Block> block = allocator_.Allocate(bytes_of(i), Stream{0});
      ASSERT_TRUE(block.ok()) << block.status();
      allocator_.Free(*block);
      allocator_.Free(*small);
    }
  }

  Allocator& allocator() { return allocator_; }
  Recorder& recorder() { return *recorder_; }
  std::uint64_t PeakBytes() const { return static_cast<std::uint64_t>(allocator_.stats().reserved_bytes.all().peak); }

  static constexpr std::uint64_t kRequests = 24;

 private:
  std::unique_ptr<Device> device_;
  Allocator allocator_;
  std::unique_ptr<Recorder> recorder_;
};

inline TunerOptions ByHand(bool may_switch) {
  TunerOptions options;
  options.may_switch = may_switch;
  options.pause = std::chrono::milliseconds(0);
  return options;
}

}  // namespace ashlar::tests

#endif  // ASHLAR_TESTS_ANALYZER_TUNER_EPOCHS_H_
