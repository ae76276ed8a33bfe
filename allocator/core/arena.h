// One stream's part of one pool as the threads see it: its small and its large lane, and which streams use its blocks
// besides. An arena lies in the thread cache (thread_caches.h) of the thread that uses it, or on the common one where
// several do, and shares its lock and sums with the other arenas there.
//
//   Arena arena({pool, stream}, thread cache, owner);  // by the exclusive section, which also moves it to another
//   thread cache
//
// Thread rule: the lock of its thread cache, or the exclusive section.
#ifndef ASHLAR_ALLOCATOR_CORE_ARENA_H_
#define ASHLAR_ALLOCATOR_CORE_ARENA_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "allocator/base/units.h"
#include "allocator/core/pending_frees.h"
#include "allocator/core/thread_caches.h"
#include "allocator/policy/heap.h"

namespace ashlar::core {

struct ArenaKey {
  PoolId pool;
  Stream stream{};

  bool operator==(const ArenaKey&) const = default;
};

// Counts the uses of an arena by others than the owner of the thread cache where it lies. Often enough by one thread in
// a row, and it moves to that thread's thread cache: each move doubles how often that is, up to a limit. Often enough
// by turns, in a thread cache where others are often, and it moves to the common one. A move looks at every slot of the
// thread cache's map of addresses, so that it wants the more visits the more slots there are.
class Visits {
 public:
  enum class Verdict : std::uint8_t { kStays, kBelongsToVisitor, kBelongsToAll };

  // The owner of `visitor` used the arena, which lies on `thread cache`, that of another or the common one.
  Verdict Count(const ThreadCache& visitor, ThreadCache& cache) {
    ++cache.visits;
    if (&visitor != visitor_) Turn(visitor, cache);
    ++streak_;
    const std::size_t least = cache.pointers.slot_count() / kSlotsOfVisit;
    if (streak_ >= wanted_streak_ && streak_ >= least) return Verdict::kBelongsToVisitor;
    const bool belongs_to_all = cache.slot != nullptr && turns_ >= kTurns && turns_ >= least;
    return belongs_to_all ? Verdict::kBelongsToAll : Verdict::kStays;
  }
  // It was used by the owner of the thread cache where it lies.
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
  static constexpr std::uint64_t kUsesOfVisit = 32;  // of the thread cache, between visits that are often

  // Another uses it than before. Rare turns do not add up.
  void Turn(const ThreadCache& visitor, const ThreadCache& cache) {
    const std::uint64_t uses = cache.lock.times_taken();
    const bool is_often = uses - last_uses_ <= kUsesOfVisit * (cache.visits - last_visits_);
    turns_ = is_often ? turns_ + 1 : 1;
    last_uses_ = uses;
    last_visits_ = cache.visits;
    visitor_ = &visitor;
    streak_ = 0;
  }

  const ThreadCache* visitor_ = nullptr;
  std::uint32_t streak_ = 0;
  std::uint32_t wanted_streak_ = kFirstStreak;
  std::uint32_t turns_ = 0;
  // The thread cache's, at the last turn.
  std::uint64_t last_uses_ = 0;
  std::uint64_t last_visits_ = 0;
};

class FastPath;

// Two cache lines apart, so that neighbours on different thread caches do not slow each other down.
struct alignas(128) Arena {
  Arena(const ArenaKey& its_key, ThreadCache& its_cache, const FastPath* its_owner)
      : key(its_key), owner(its_owner), cache(&its_cache) {}

  const ArenaKey key;
  const FastPath* const owner;
  ThreadCache* cache;                    // changes in the exclusive section
  std::array<policy::Lane*, 2> lanes{};  // large, small; nullptr while there is no such lane
  // The same where a plan places its requests, or where its pool is asleep: none is served here.
  std::array<policy::Lane*, 2> planned{};
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

// The arenas of an allocator by (pool, stream): open addressing, at most half full; what goes leaves no trace.
// Thread rule: Find under any thread cache's lock, the rest in the exclusive section.
class ArenaTable {
 public:
  // nullptr when there is none.
  Arena* Find(const ArenaKey& key) const { return slots_[IndexOf(key)].get(); }

  // Lies in the thread cache if it is new.
  Arena& FindOrAdd(const ArenaKey& key, ThreadCache& cache, const FastPath* owner) {
    if (Arena* arena = Find(key); arena != nullptr) return *arena;
    if (2 * ++size_ > slots_.size()) Resize(2 * slots_.size());
    std::unique_ptr<Arena>& slot = slots_[IndexOf(key)];
    slot = std::make_unique<Arena>(key, cache, owner);
    return *slot;
  }

  // Moves later slots of the same run back, so that no search ends too early.
  void Erase(const Arena& arena) {
    std::size_t hole = IndexOf(arena.key);
    slots_[hole] = nullptr;
    for (std::size_t i = Next(hole); slots_[i] != nullptr; i = Next(i)) {
      const std::size_t distance = (i - HashOf(slots_[i]->key)) & Mask();
      if (distance < ((i - hole) & Mask())) continue;
      slots_[hole] = std::move(slots_[i]);
      hole = i;
    }
    --size_;
    if (slots_.size() > kFirstSlots && 8 * size_ < slots_.size()) Resize(slots_.size() / 2);
  }

  std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t kFirstSlots = 16;

  static std::size_t HashOf(const ArenaKey& key) {
    std::uint64_t hash = Handle(key.stream);
    hash ^= (key.pool.first * 0x9e3779b97f4a7c15u) ^ (key.pool.second * 0xc2b2ae3d27d4eb4fu);
    hash *= 0x9e3779b97f4a7c15u;
    return static_cast<std::size_t>(hash >> 32);
  }
  std::size_t Mask() const { return slots_.size() - 1; }
  std::size_t Next(std::size_t i) const { return (i + 1) & Mask(); }

  // Of the slot that holds it, or of the empty one where the search ends.
  std::size_t IndexOf(const ArenaKey& key) const {
    std::size_t i = HashOf(key) & Mask();
    while (slots_[i] != nullptr && !(slots_[i]->key == key)) i = Next(i);
    return i;
  }

  void Resize(std::size_t count) {
    std::vector<std::unique_ptr<Arena>> old(count);
    old.swap(slots_);
    for (std::unique_ptr<Arena>& arena : old) {
      if (arena != nullptr) slots_[IndexOf(arena->key)] = std::move(arena);
    }
  }

  std::vector<std::unique_ptr<Arena>> slots_ = std::vector<std::unique_ptr<Arena>>(kFirstSlots);
  std::size_t size_ = 0;
};

// Finds the arena that handed an address out: a table of five levels over pages of 2 MiB, the size of the smallest
// segment. An entry is a hint: it may be missing (an address above 2^48, a page that two arenas share) and it may be
// out of date, so who asks looks in the arena, and in the segments if it is not there. It never names an arena that is
// gone. Thread rule: Find under any thread cache's lock, by any number of threads; the rest in the exclusive section.
class PageDirectory {
 public:
  // nullptr where there is no hint.
  Arena* Find(std::uint64_t address) const { return address >> kAddressBits == 0 ? FindIn(top_, address) : nullptr; }

  // Blocks of the arena will be in [begin, end). Of arenas that share a page the last to enter stays.
  void Enter(std::uint64_t begin, std::uint64_t end, Arena* arena) {
    ForEachPage(begin, end, [&](std::uint64_t page) { EntryOf(top_, page).store(arena, std::memory_order_release); });
  }

  // The arena has no block in [begin, end) any more.
  void Leave(std::uint64_t begin, std::uint64_t end, const Arena* arena) {
    ForEachPage(begin, end, [&](std::uint64_t page) {
      if (Find(page) == arena) EntryOf(top_, page).store(nullptr, std::memory_order_release);
    });
  }

 private:
  static constexpr int kPageBits = 21;
  // The pages of a table at each level: small tables, since streams may be far apart, and each has its own then.
  static constexpr std::array<int, 5> kBits = {5, 5, 5, 6, 6};
  static constexpr int BitsBelow(std::size_t level) {
    return std::accumulate(kBits.begin(), kBits.begin() + level, kPageBits);
  }
  static constexpr int kAddressBits = std::accumulate(kBits.begin(), kBits.end(), kPageBits);

  template <std::size_t level>
  struct Table {
    using Below = std::conditional_t<level == 0, Arena, Table<level == 0 ? 0 : level - 1>>;
    ~Table() {
      if constexpr (level > 0) {
        for (std::atomic<Below*>& below : at) delete below.load(std::memory_order_relaxed);
      }
    }
    std::atomic<Below*>& operator[](std::uint64_t address) {
      return at[address >> BitsBelow(level) & ((std::uint64_t{1} << kBits[level]) - 1)];
    }
    const std::atomic<Below*>& operator[](std::uint64_t address) const { return const_cast<Table&>(*this)[address]; }

    std::array<std::atomic<Below*>, std::size_t{1} << kBits[level]> at{};
  };
  using Top = Table<kBits.size() - 1>;

  template <std::size_t level>
  static Arena* FindIn(const Table<level>& table, std::uint64_t address) {
    auto* below = table[address].load(std::memory_order_acquire);
    if constexpr (level == 0) {
      return below;
    } else {
      return below == nullptr ? nullptr : FindIn(*below, address);
    }
  }
  // Makes the tables on the way.
  template <std::size_t level>
  static std::atomic<Arena*>& EntryOf(Table<level>& table, std::uint64_t address) {
    if constexpr (level == 0) {
      return table[address];
    } else {
      std::atomic<Table<level - 1>*>& entry = table[address];
      if (entry.load(std::memory_order_relaxed) == nullptr) {
        entry.store(new Table<level - 1>(), std::memory_order_release);
      }
      return EntryOf(*entry.load(std::memory_order_relaxed), address);
    }
  }
  // One address of each, as far as there is room for them.
  template <typename Visit>
  static void ForEachPage(std::uint64_t begin, std::uint64_t end, Visit visit) {
    constexpr std::uint64_t kPageBytes = std::uint64_t{1} << kPageBits;
    const std::uint64_t last = std::min(end, std::uint64_t{1} << kAddressBits);
    for (std::uint64_t page = begin & ~(kPageBytes - 1); page < last; page += kPageBytes) visit(page);
  }
  Top top_{};
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_ARENA_H_
