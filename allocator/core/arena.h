// One stream's part of one pool as the threads see it: its small and its large lane, and which streams use its blocks
// besides. An arena lies on the desk (desk.h) of the thread that uses it, or on the common one where several do, and
// shares its lock and sums with the other arenas there.
//
//   Arena arena({pool, stream}, desk, owner);  // by the exclusive section, which also moves it to another desk
//
// Thread rule: the lock of its desk, or the exclusive section.
#ifndef ASHLAR_ALLOCATOR_CORE_ARENA_H_
#define ASHLAR_ALLOCATOR_CORE_ARENA_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "allocator/base/units.h"
#include "allocator/core/desk.h"
#include "allocator/core/stream_list.h"
#include "allocator/policy/heap.h"

namespace ashlar::core {

struct ArenaKey {
  PoolId pool;
  Stream stream{};

  bool operator==(const ArenaKey&) const = default;
};

// Counts the uses of an arena by others than the owner of the desk where it lies. Often enough by one thread in a row,
// and it moves to that thread's desk: each move doubles how often that is, up to a limit. Often enough by turns, on a
// desk where others are often, and it moves to the common one. A move looks at every slot of the desk's map of
// addresses, so that it wants the more visits the more slots there are.
class Visits {
 public:
  enum class Verdict : std::uint8_t { kStays, kBelongsToVisitor, kBelongsToAll };

  // The owner of `visitor` used the arena, which lies on `desk`, that of another or the common one.
  Verdict Count(const Desk& visitor, Desk& desk) {
    ++desk.visits;
    if (&visitor != visitor_) Turn(visitor, desk);
    ++streak_;
    const std::size_t least = desk.pointers.slot_count() / kSlotsOfVisit;
    if (streak_ >= wanted_streak_ && streak_ >= least) return Verdict::kBelongsToVisitor;
    const bool belongs_to_all = desk.seat != nullptr && turns_ >= kTurns && turns_ >= least;
    return belongs_to_all ? Verdict::kBelongsToAll : Verdict::kStays;
  }
  // It was used by the owner of the desk where it lies.
  void Interrupt() { visitor_ = nullptr; }
  void Moved() {
    visitor_ = nullptr;
    turns_ = 0;
    if (wanted_streak_ < kLongestStreak) wanted_streak_ *= 2;
  }

 private:
  static constexpr std::uint32_t kFirstStreak = 16;
  static constexpr std::uint32_t kLongestStreak = 4096;
  static constexpr std::size_t kSlotsOfVisit = 64;  // that a visit pays for
  static constexpr std::uint32_t kTurns = 16;
  static constexpr std::uint64_t kUsesOfVisit = 32;  // of the desk, between visits that are often

  // Another uses it than before. Rare turns do not add up.
  void Turn(const Desk& visitor, const Desk& desk) {
    const std::uint64_t uses = desk.lock.times_taken();
    const bool is_often = uses - last_uses_ <= kUsesOfVisit * (desk.visits - last_visits_);
    turns_ = is_often ? turns_ + 1 : 1;
    last_uses_ = uses;
    last_visits_ = desk.visits;
    visitor_ = &visitor;
    streak_ = 0;
  }

  const Desk* visitor_ = nullptr;
  std::uint32_t streak_ = 0;
  std::uint32_t wanted_streak_ = kFirstStreak;
  std::uint32_t turns_ = 0;
  // The desk's, at the last turn.
  std::uint64_t last_uses_ = 0;
  std::uint64_t last_visits_ = 0;
};

class FastPath;

// Two cache lines apart, so that neighbours on different desks do not slow each other down.
struct alignas(128) Arena {
  Arena(const ArenaKey& its_key, Desk& its_desk, const FastPath* its_owner)
      : key(its_key), owner(its_owner), desk(&its_desk) {}

  const ArenaKey key;
  const FastPath* const owner;
  Desk* desk;                              // changes in the exclusive section
  std::array<policy::Lane*, 2> lanes{};    // large, small; nullptr while there is no such lane
  std::array<policy::Lane*, 2> planned{};  // the same where a plan places its requests: none is served here
  Visits visits;
  using RecordedStreams = absl::flat_hash_map<const policy::Block*, StreamList>;
  std::unique_ptr<RecordedStreams> recorded_streams;  // nullptr: there were none yet

  bool IsEmpty() const {
    return lanes[0] == nullptr && lanes[1] == nullptr && planned[0] == nullptr && planned[1] == nullptr;
  }
  policy::Lane*& LaneOf(bool is_small) { return lanes[is_small ? 1 : 0]; }
  policy::Lane*& PlannedOf(bool is_small) { return planned[is_small ? 1 : 0]; }
};
static_assert(sizeof(Arena) == 128);

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_ARENA_H_
