// Bounds the waits on the device that borrow_across_streams inserts, without a clock, so that a replay comes to the
// same decisions: each wait owes 1,000, each request that is served since pays `most_waits` back, and no more than
// `most_waits` waits may be owed. So in 1,000 requests there are at most about that many, and as many at once.
//
//   if (!owed.MayWait(served, options.borrow_most_waits)) return nullptr;
//   ...
//   owed.Add(served, options.borrow_most_waits);
//
// `served`: requests served so far. Thread rule: not thread-safe; the allocator's exclusive section guards it.
#ifndef ASHLAR_ALLOCATOR_CORE_WAITS_OWED_H_
#define ASHLAR_ALLOCATOR_CORE_WAITS_OWED_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "allocator/trace/fact.h"

namespace ashlar::core {

class WaitsOwed {
 public:
  static constexpr std::uint64_t kOneWait = 1000;

  // Where `most_waits` is nothing there is no bound, and nothing is owed.
  bool MayWait(std::uint64_t served, std::optional<std::uint64_t> most_waits) const {
    return !most_waits.has_value() || OwedNow(served, *most_waits) + kOneWait <= *most_waits * kOneWait;
  }
  void Add(std::uint64_t served, std::optional<std::uint64_t> most_waits) {
    owed_ = most_waits.has_value() ? OwedNow(served, *most_waits) + kOneWait : 0;
    served_ = served;
  }
  // After the last wait.
  std::uint32_t owed() const { return static_cast<std::uint32_t>(owed_); }

  trace::fact::WaitsOwed Standing(std::uint64_t served) const {
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
    return {owed(), static_cast<std::uint32_t>(std::min(served - served_, kMost))};
  }
  void Restore(const trace::fact::WaitsOwed& standing, std::uint64_t served) {
    owed_ = standing.owed;
    served_ = served - standing.served_since;  // may count from before 0
  }

 private:
  std::uint64_t OwedNow(std::uint64_t served, std::uint64_t most_waits) const {
    const std::uint64_t since = served - served_;
    const std::uint64_t paid = most_waits == 0 ? 0 : since > owed_ / most_waits ? owed_ : since * most_waits;
    return owed_ - paid;
  }

  std::uint64_t owed_ = 0;
  std::uint64_t served_ = 0;  // at the last wait
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_WAITS_OWED_H_
