// A slow, obvious model of the whole allocator, written from the text of the policy and sharing no code with it: blocks
// in one map by address, every question answered by looking at all of them, every statistic by recounting. The random
// programs of tests/allocator/core run on the model and on the product and must agree on every event and every number.
//
//   model::Model model(options, {.capacity_bytes = 64 * kMiB});
//   std::optional<std::uint64_t> address = model.Allocate(300, Stream{0}, PoolId{});   // nullopt: out of memory
//   model.Free(*address);
//   model.TakeEvents();
//
// Blocks are named by their address, which is unique while they are live or pending. Bytes everywhere.
#ifndef ASHLAR_TESTS_ALLOCATOR_POLICY_MODEL_H_
#define ASHLAR_TESTS_ALLOCATOR_POLICY_MODEL_H_

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/policy/options.h"
#include "allocator/trace/event.h"

namespace ashlar::model {

// To the next multiple of `step`.
inline std::uint64_t Up(std::uint64_t value, std::uint64_t step) {
  return value % step == 0 ? value : value + step - value % step;
}
inline std::int64_t Signed(std::uint64_t value) { return static_cast<std::int64_t>(value); }

struct Event {
  trace::Action action{};
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t stream = 0;
  PoolId pool;
  std::uint64_t block_size_bytes = 0;  // of alloc only
  auto operator<=>(const Event&) const = default;
};

// One counter over all pools, the small and the large ones.
struct Counter {
  std::int64_t current[3] = {};
  std::int64_t peak[3] = {};
  std::int64_t increases[3] = {};
  void Change(bool is_small, std::int64_t amount);
};

struct Stats {
  Counter allocation, active, segment, inactive_split;
  Counter allocated_bytes, active_bytes, requested_bytes, reserved_bytes, inactive_split_bytes;
  Counter oversize_allocations, oversize_segments;  // only [0] counts
  std::int64_t stream_waits = 0, retries = 0, ooms = 0, rejections = 0, sync_all = 0, device_alloc = 0, device_free = 0;
};

enum class State { kFree, kLive, kPending, kUnmapped };

struct Block {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint64_t requested = 0;
  std::uint64_t segment = 0;   // address of its segment
  std::uint64_t number = 0;    // of the block object
  std::uint64_t inserted = 0;  // the pool's clock when it joined the free set
  State state = State::kFree;
  std::vector<std::uint64_t> recorded_streams;  // in the order they were recorded
  int waiting_events = 0;
};

struct PoolKey {
  PoolId id;
  bool is_small = false;
  auto operator<=>(const PoolKey&) const = default;
};

struct Segment {
  std::uint64_t size = 0;
  std::uint64_t stream = 0;
  std::uint64_t number = 0;
  std::uint64_t page = 0;
  PoolKey pool;
  bool expandable = false;
};

struct DeviceSettings {
  std::uint64_t capacity_bytes = 0;
  bool events_complete_immediately = false;
  bool descending = false;
};

class Model {
 public:
  Model(const policy::Options& options, const DeviceSettings& device);

  // The address; 0 for 0 bytes, nullopt when out of memory.
  std::optional<std::uint64_t> Allocate(std::uint64_t bytes, Stream stream, PoolId pool);
  void Free(std::uint64_t address);
  void RecordStream(std::uint64_t address, Stream stream);
  void CompleteAllWork();
  void EmptyCache();
  void SetMemoryFraction(double fraction);
  void ConfigurePool(PoolId pool, bool use_on_oom, bool no_split);
  void ReleasePool(PoolId pool);
  void BeginPool(PoolId pool, Stream stream, bool is_capture);
  void EndPool(PoolId pool);

  std::vector<Event> TakeEvents();
  const Stats& stats() const { return stats_; }
  const std::map<std::uint64_t, Block>& blocks() const { return blocks_; }
  std::uint64_t used_bytes() const { return used_; }

 private:
  struct Need {
    std::uint64_t request = 0;
    std::uint64_t size = 0;     // rounded
    std::uint64_t segment = 0;  // of a new segment
    std::uint64_t stream = 0;
    PoolKey pool;
  };
  enum class Answer { kOk, kOutOfMemory, kRejected };
  struct PrivatePool {
    bool use_on_oom = false;
    bool no_split = false;
    int users = 1;
  };
  struct Waiting {
    std::uint64_t sequence = 0;
    std::uint64_t block = 0;
  };

  struct Route {
    PoolId pool;
    std::uint64_t stream = 0;
    bool is_capture = false;
  };
  struct StreamWait {
    std::uint64_t stream = 0;
    std::uint64_t awaited = 0;
    std::uint64_t sequence = 0;
  };

  bool IsLate() const;
  bool IsCapturing() const;
  void Record(Block& block, std::uint64_t stream);
  void WaitForStreams(Block& block);
  std::uint64_t Rounded(std::uint64_t request) const;
  Need MakeNeed(std::uint64_t bytes, std::uint64_t stream, PoolId pool) const;
  bool AgesCount() const { return limit_.has_value() && options_.garbage_collection_threshold > 0; }

  Segment& SegmentOf(const Block& block) { return segments_.at(block.segment); }
  Block* Previous(const Block& block);
  Block* Next(const Block& block);
  bool IsSplit(const Block& block) { return Previous(block) != nullptr || Next(block) != nullptr; }
  using Key = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t>;
  Key KeyOf(const Block& block);
  std::vector<Block*> FreeBlocks(const PoolKey& pool);  // in order
  std::vector<Block*> FreeBlocksOf(const PoolKey& pool, std::uint64_t stream);

  Block* FindFree(const Need& need, const PoolKey& pool, bool is_overflow);
  // Beyond PyTorch: the cache once more after waiting, blocks of other streams, and as few waits as will do.
  Block* FindInOverflow(const Need& need);
  Block* FindInOtherStreams(const Need& need);
  Block* FindAfterWaiting(const Need& need);
  std::vector<std::uint64_t> FewestWaits(const Need& need);
  void WaitForBlock(std::uint64_t address);
  void MarkDone(std::uint64_t stream, std::uint64_t sequence);
  Answer GrowAfterFewWaits(const Need& need, Block** out);
  std::uint64_t Room(const Block& block);
  Answer NewSegment(const Need& need, Block** out);
  Answer Grow(const Need& need, Block** out);
  Block* FindGrowth(const Need& need);
  // Policy ashlar: where the fewest bytes are mapped, and which pages move there.
  bool IsOurs() const { return options_.policy == policy::Policy::kAshlar; }
  struct GrowthPlace {
    Block* start = nullptr;
    std::uint64_t map_bytes = 0;
  };
  GrowthPlace FindLeastGrowth(const Need& need);
  std::uint64_t PageFor(const Segment& segment, std::uint64_t wanted, std::uint64_t room) const;
  // The addresses of the mapped pages that lie wholly in the block.
  std::vector<std::uint64_t> PagesIn(const Block& block) const;
  std::uint64_t Spare() const;
  bool MovePages(const Need& need, std::uint64_t spare);
  void UnmapEach(const std::vector<std::uint64_t>& pages);
  std::uint64_t GrowthBytes(const Need& need);
  Answer GrowByRepair(const Need& need, Block** out);
  Answer GrowAfterRepair(const Need& need, Block** out);
  Block* NewReservation(const Need& need);
  Block* MapSome(Block* block, std::uint64_t wanted);
  std::uint64_t Place(Block* block, const Need& need);
  bool Splits(const Block& block, std::uint64_t remaining, const Need& need);
  std::uint64_t Fail(const Need& need, bool is_rejection);

  void CollectGarbage();
  bool ReleaseAvailable(const Need& need);
  void ReleaseEmptyReservations(PoolId pool);
  void ReturnCached(PoolId in_use);
  void ReleasePoolBlocks(const PoolKey& pool);
  void ReleaseWhole(Block* block);
  void UnmapPages(Block* block);
  void UnmapRange(std::uint64_t begin, std::uint64_t end);
  void ProcessEvents(bool is_synchronising);
  void FinishFree(Block* block);
  void FinishHead(std::vector<Waiting>& queue);
  Block* Merge(Block* block, Block* neighbour);
  Block* AddBlock(std::uint64_t address, std::uint64_t size, std::uint64_t segment, State state);
  void RecountInactiveSplit();

  std::optional<std::uint64_t> TakeRange(bool is_reservation, std::uint64_t size);
  void Emit(trace::Action action, std::uint64_t address, std::uint64_t size, std::uint64_t stream, PoolId pool,
            std::uint64_t block_size = 0);

  policy::Options options_;
  DeviceSettings device_;
  std::map<std::uint64_t, Block> blocks_;
  std::map<std::uint64_t, Segment> segments_;
  std::map<PoolKey, std::uint64_t> clocks_;
  std::map<PoolId, PrivatePool> private_pools_;
  std::map<std::uint64_t, std::vector<Waiting>> waiting_;  // by stream, oldest first
  std::vector<Route> routes_;                              // the youngest is the last
  std::vector<std::uint64_t> deferred_;                    // blocks freed during a capture that other streams use
  std::optional<std::uint64_t> limit_;
  std::map<std::uint64_t, std::uint64_t> pages_;     // policy ashlar: mapped pages, address -> size
  std::map<std::uint64_t, std::uint64_t> taken_[2];  // the device's address ranges: segments, reservations
  std::uint64_t used_ = 0;
  std::uint64_t sequence_ = 0;
  std::uint64_t completed_ = 0;
  std::map<std::uint64_t, std::uint64_t> done_;  // by stream: the last event that was waited for
  std::vector<StreamWait> stream_waits_;         // a stream's events after `sequence` come after the awaited's before
  bool may_return_ = false;                      // a free left a whole segment, or pages
  std::uint64_t next_segment_number_ = 1;
  std::uint64_t next_block_number_ = 1;
  Stats stats_;
  std::uint64_t waits_owed_ = 0;  // 1,000 a wait, by borrow_most_waits
  std::vector<Event> events_;
};

}  // namespace ashlar::model

#endif  // ASHLAR_TESTS_ALLOCATOR_POLICY_MODEL_H_
