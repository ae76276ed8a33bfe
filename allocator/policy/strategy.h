// A strategy is all that a policy decides otherwise than another: what becomes of the settings, where expandable
// segments grow and by how much, and which rungs follow once the device has refused. The heap takes its strategy when
// the options become an allocator; the heap, the ledger and the ladder ask the strategy, and no policy.
//
//   const Strategy& strategy = heap.strategy();
//   for (const Rung rung : strategy.RungsAfterRefusal(heap.options())) ...
//
// A policy is one file, which tells the whole of it: torch_strategy.cc, ashlar_strategy.cc. Pure and stateless: any
// thread may ask. What the cache serves calls none of the virtual functions.
#ifndef ASHLAR_ALLOCATOR_POLICY_STRATEGY_H_
#define ASHLAR_ALLOCATOR_POLICY_STRATEGY_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "allocator/base/units.h"
#include "allocator/policy/options.h"

namespace ashlar::policy {

struct Block;
struct Decision;

// What is tried, in turn, for a request that neither the cache nor the device has served. allocator/core makes the
// attempts.
enum class Rung : std::uint8_t {
  kReturnOversize,  // oversize segments go back to the device; then growth
  kMovePages,       // whole free pages go to where the request needs them; then growth
  kWaitForAll,      // all events are waited for
  kSearch,          // the cache is searched again
  kWaitForFew,      // events are waited for one by one, with a search or growth after each
  kReturnAll,       // all that is whole-free goes back; then growth
};

// What a growth knows. Bytes.
struct GrowthNeed {
  std::uint64_t wanted_bytes = 0;    // at least 1
  std::uint64_t room_bytes = 0;      // unmapped addresses there; a multiple of page_bytes
  std::uint64_t reserved_bytes = 0;  // by the allocator
  std::uint64_t spare_bytes = 0;     // what it may reserve besides
  std::uint64_t page_bytes = 0;      // of the segment: every page is a multiple
  bool is_small = false;             // of the small pool
};

struct GrowthSize {
  std::uint64_t size_bytes = 0;  // whole pages, at most the room
  std::uint64_t page_bytes = 0;
};

// In the segment's own pages, no more than is wanted takes.
constexpr GrowthSize LeastGrowth(const GrowthNeed& need) {
  return {RoundUp(need.wanted_bytes, need.page_bytes), need.page_bytes};
}

class Strategy {
 public:
  struct Traits {
    absl::string_view name;            // as `policy` in settings
    bool has_own_order = false;        // of free blocks of equal size, whatever the version of PyTorch
    bool prefers_little_room = false;  // a larger block of an expandable segment, where it has less room to grow
    bool shares_pages = false;         // pages of overflow pools serve other requests
    bool pages_tell_pool = false;      // by their size
    bool pages_follow_room = false;    // their sizes depend on the device's memory
  };

  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;

  const Traits& traits() const { return traits_; }

  // Makes the settings that were read those of this policy. `has_order`: they name an order of free blocks.
  virtual void Settle(bool has_order, Options& options) const = 0;

  // --- expandable segments ---
  virtual std::uint64_t PageBytes(bool is_small, const Options& options) const = 0;
  // Where growth starts: an unmapped block or a free one before it; nullptr: a new reservation is needed.
  virtual Block* FindGrowth(const Decision& decision) const = 0;
  virtual GrowthSize SizeOf(const GrowthNeed& need) const = 0;
  // Whether a reservation that is smaller than its first request stays.
  virtual bool KeepsShortReservations(const Options& options) const = 0;

  // --- the ladder ---
  // What the limits are held against before the device is asked.
  virtual std::uint64_t GrowthBytes(const Decision& decision) const = 0;
  virtual absl::Span<const Rung> RungsAfterRefusal(const Options& options) const = 0;

 protected:
  constexpr explicit Strategy(const Traits& traits) : traits_(traits) {}
  ~Strategy() = default;

 private:
  const Traits traits_;
};

// Each is defined in the file of its policy.
const Strategy& TorchStrategy();
const Strategy& AshlarStrategy();

inline const Strategy& StrategyOf(Policy policy) {
  return policy == Policy::kAshlar ? AshlarStrategy() : TorchStrategy();
}

// The page in which expandable segments grow.
inline std::uint64_t PageBytes(bool is_small, const Options& options) {
  return StrategyOf(options.policy).PageBytes(is_small, options);
}

}  // namespace ashlar::policy

#endif  // ASHLAR_ALLOCATOR_POLICY_STRATEGY_H_
