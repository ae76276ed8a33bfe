// A steady state: a number of live blocks, of which a random one is replaced by one of random size on a random stream.
#ifndef ASHLAR_BENCH_STEADY_STATE_H_
#define ASHLAR_BENCH_STEADY_STATE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/answers.h"

namespace ashlar::bench {

inline constexpr std::array<std::uint64_t, 9> kFixedSizes = {512,      4 * kKiB, 16 * kKiB, 64 * kKiB, 256 * kKiB,
                                                             1 * kMiB, 2 * kMiB, 4 * kMiB,  8 * kMiB};

struct SteadyPlan {
  std::size_t count = 1000;  // blocks live
  bool is_fixed = false;     // one of kFixedSizes, or any size
  std::uint64_t streams = 1;
  std::uint64_t first_stream = 0;
  std::uint64_t seed = 3;
};

template <typename Subject>
class alignas(256) SteadyState {
 public:
  SteadyState(Subject& subject, const SteadyPlan& plan)
      : subject_(subject), program_(std::size_t{1} << 18), sizes_(plan.count), live_(plan.count) {
    Rng rng(plan.seed);
    const auto random_size = [&] {
      return plan.is_fixed ? kFixedSizes[rng.Below(kFixedSizes.size())] : RandomSize(rng);
    };
    const auto random_stream = [&] {
      return Stream{plan.first_stream + (plan.streams == 1 ? 0 : rng.Below(plan.streams))};
    };
    for (Turn& turn : program_) {
      turn = {random_size(), random_stream(), static_cast<std::uint32_t>(rng.Below(plan.count))};
    }
    for (std::uint64_t& size : sizes_) size = random_size();
    for (std::size_t i = 0; i < plan.count; ++i) live_[i] = subject_.Allocate(sizes_[i], random_stream());
    // The fragmentation of a warm process; a stream of its own share is to see as much of it as the only one.
    for (std::uint64_t i = 0; i < 2 * plan.count + kWarmingsOfStream * (plan.streams - 1); ++i) Step();
  }
  void Step() {
    const Turn& turn = program_[at_++ % program_.size()];
    subject_.Free(live_[turn.victim]);
    live_[turn.victim] = subject_.Allocate(turn.bytes, turn.stream);
    sizes_[turn.victim] = turn.bytes;
  }
  void FreeAll() {
    for (const auto& handle : live_) subject_.Free(handle);
  }
  const std::vector<typename Subject::Handle>& live() const { return live_; }
  const std::vector<std::uint64_t>& sizes() const { return sizes_; }

 private:
  static constexpr std::uint64_t kWarmingsOfStream = 256;

  struct Turn {
    std::uint64_t bytes;
    Stream stream;
    std::uint32_t victim;
  };
  Subject& subject_;
  std::vector<Turn> program_;
  std::vector<std::uint64_t> sizes_;
  std::vector<typename Subject::Handle> live_;
  std::size_t at_ = 0;
};

}  // namespace ashlar::bench

#endif  // ASHLAR_BENCH_STEADY_STATE_H_
