// Puts pools to sleep and wakes them: the pages of their segments go back to the device, the blocks and their addresses
// stay, and what live blocks hold is kept elsewhere (kept_bytes.h).
//
//   Sleeper sleeper(ledger, device, ladder, limits);
//   absl::StatusOr<SleepReport> slept = sleeper.Sleep(pairs, {.keep = Keep::kHost});
//   const Sleeper::Woken woken = sleeper.Wake(pairs);      // all of them, or none and why not
//
//   | live | free .... | live |   pages      asleep: no page          awake: pages with a live byte
//
// Sleep waits for the streams that use the pools, copies, and then unmaps: where waiting or copying fails, nothing
// sleeps. Wake maps, then copies: where one of both fails, it unmaps again, and what is kept stays. Frees go on
// meanwhile; a page that lost its last live byte does not come back, unless a graph may still use it
// (policy::PoolPair::MayReturn). Only expandable segments can sleep: the addresses of others are the device's.
//
// The fast path must serve nothing of the pairs meanwhile (FastPath::SetAsleep). Not thread-safe: the allocator's
// exclusive section guards it, but for IsAnyAsleep.
#ifndef ASHLAR_ALLOCATOR_CORE_SLEEPER_H_
#define ASHLAR_ALLOCATOR_CORE_SLEEPER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/core/kept_bytes.h"
#include "allocator/core/ladder.h"
#include "allocator/core/ledger.h"
#include "allocator/core/limits.h"
#include "allocator/device/device.h"
#include "allocator/policy/heap.h"
#include "ashlar/sleep.h"

namespace ashlar::core {

class Sleeper {
 public:
  using Pairs = std::vector<policy::PoolPair*>;
  using StreamsOfBlock = absl::FunctionRef<StreamList(const policy::Block&)>;

  // All outlive this.
  Sleeper(Ledger& ledger, device::Device& device, Ladder& ladder, const Limits& limits)
      : ledger_(ledger), device_(device), ladder_(ladder), limits_(limits) {}

  // Whether a pair sleeps, by any thread.
  bool IsAnyAsleep() const { return asleep_count_.load(std::memory_order_relaxed) != 0; }

  // The pairs are awake, and what is free in them was returned. `recorded`: the streams that use a block besides its
  // own. FailedPrecondition: a pair has a segment that cannot sleep. Errors of unmapping are the device's to mend, and
  // go to the ladder's.
  absl::StatusOr<SleepReport> Sleep(const Pairs& pairs, const SleepOptions& options, StreamsOfBlock recorded);

  struct Woken {
    absl::Status status;
    std::uint64_t lacking_bytes = 0;  // where the device, or a limit, has no memory: what all pages take
  };
  // Pairs that are awake are passed over.
  Woken Wake(const Pairs& pairs, const SleepProgress& progress = {});

 private:
  // What one pair left when it fell asleep.
  struct Sleeping {
    std::unique_ptr<KeptBytes> kept;                                // nullptr: nothing
    absl::flat_hash_map<std::uint64_t, std::uint64_t> places = {};  // in it, by the block's address
  };
  // How much of all is copied, told to whom wants to know.
  struct Progress {
    const SleepProgress& told;
    std::uint64_t all_bytes = 0;
    std::uint64_t copied_bytes = 0;

    // What KeptBytes tells of one pair.
    std::function<void(std::uint64_t)> OfPieces();
  };
  struct MappedRun {
    policy::PageRun run;
    const policy::Lane* lane = nullptr;
    policy::PoolPair* pair() const { return lane->pool->pair; }
  };

  using VisitSegment = absl::FunctionRef<absl::Status(const policy::Segment&)>;
  absl::Status ForEachSegment(const policy::PoolPair& pair, VisitSegment visit) const;
  absl::Status CheckExpandable(const policy::PoolPair& pair) const;
  absl::Status WaitForUsers(const policy::PoolPair& pair, StreamsOfBlock recorded);
  std::uint64_t LiveBytes(const policy::PoolPair& pair) const;
  std::uint64_t RoomInHost(const SleepOptions& options) const;
  absl::Status Save(const policy::PoolPair& pair, const SleepOptions& options, Sleeping& out, Progress& progress);
  absl::Status Load(const policy::PoolPair& pair, Progress& progress);
  void GiveBack(policy::PoolPair& pair);

  std::vector<MappedRun> PagesToWake(const Pairs& pairs) const;
  absl::Status Map(const policy::PageRun& run, std::uint64_t mapped_bytes);
  absl::Status MapAll(const std::vector<MappedRun>& runs);
  absl::Status MapAfterAll(const Pairs& pairs, std::vector<MappedRun>& runs);
  void UnmapAgain(const std::vector<MappedRun>& runs, std::size_t mapped);
  void NoteAwake(policy::PoolPair& pair, std::int64_t calls);
  std::uint64_t KeptInHost() const;

  Ledger& ledger_;
  device::Device& device_;
  Ladder& ladder_;
  const Limits& limits_;
  std::map<PoolId, Sleeping> asleep_;
  std::atomic<std::size_t> asleep_count_{0};
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_SLEEPER_H_
