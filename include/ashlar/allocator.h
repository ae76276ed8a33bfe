// A caching allocator of device memory. It obtains segments from a device, cuts blocks from them, and keeps freed
// blocks for the next request of the same stream. It decides as PyTorch's CUDA caching allocator does.
//
//   absl::StatusOr<std::unique_ptr<ashlar::Device>> gpu = ashlar::OpenCudaDevice({});
//   ashlar::Allocator allocator(gpu->get(), *ashlar::Options::Parse("max_split_size_mb:128"));
//
//   absl::StatusOr<ashlar::Block> block = allocator.Allocate(300 * ashlar::kMiB, ashlar::Stream{0});
//   if (!block.ok()) std::cerr << block.status().message();   // out of memory: where every byte is
//   Kernel<<<..., stream>>>(block->data());
//   allocator.RecordStream(*block, other);   // `other` uses it too
//   allocator.Free(*block);                  // reused in stream order, once work so far on `other` is done
//
// buffer.h has a block that frees itself, pool.h private pools, errors.h exceptions in place of statuses.
//
// Errors: kResourceExhausted is out of memory, after everything was tried. Its text has at most 12 lines on where every
// byte is; the first line is a message by itself. Any other code is the device's own. A request fails with the device's
// error, not as out of memory, when the allocator could not synchronise or return memory. A call that returns nothing
// leaves its error in TakeDeviceError. A lost device (reset, or this is a forked child) fails every Allocate from then
// on; frees only keep account, and nothing is returned. A wrong call ends the program with one line, where the
// allocator can notice it (docs/library/misuse.md).
//
// Threads: any thread may call any function at any time, unless its comment says otherwise. A block may be freed by
// another thread than the one that allocated it.
#ifndef ASHLAR_ALLOCATOR_H_
#define ASHLAR_ALLOCATOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ashlar/device.h"
#include "ashlar/events.h"
#include "ashlar/export.h"
#include "ashlar/options.h"
#include "ashlar/pool_routes.h"
#include "ashlar/sleep.h"
#include "ashlar/snapshot.h"
#include "ashlar/soft_limit.h"
#include "ashlar/statistics.h"
#include "ashlar/units.h"

namespace ashlar {

namespace policy {
struct Block;
}
namespace core {
class CachingAllocator;
}

// A block of memory, by handle: a value to pass around. It says nothing any more once the block was freed.
class Block {
 public:
  Block() = default;  // no block

  explicit operator bool() const { return record_ != nullptr; }
  std::uint64_t address() const { return address_; }
  void* data() const { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address_)); }
  // Of a live block: at least what was asked for; 0 where there is no block.
  ASHLAR_EXPORT std::uint64_t size_bytes() const;
  // What was asked for.
  ASHLAR_EXPORT std::uint64_t requested_bytes() const;

  friend bool operator==(const Block&, const Block&) = default;

 private:
  friend class Allocator;
  explicit Block(const policy::Block* record);
  const policy::Block* record_ = nullptr;
  std::uint64_t address_ = 0;
};

class ASHLAR_EXPORT Allocator {
 public:
  // The device is not null and outlives the allocator. Segments are not returned at destruction: the device's owner
  // decides. Blocks that live then are told in one line on stderr, unless report_leaks is false.
  explicit Allocator(Device* device, const Options& options = {});
  ~Allocator();
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // --- blocks ---
  // A block of at least `bytes`; no block for 0 bytes, which is no request at all.
  absl::StatusOr<Block> Allocate(std::uint64_t bytes, Stream stream, PoolId pool = {});
  // The block's caller is done with it; no block is nothing to do.
  void Free(Block block) noexcept;
  // `stream` uses the block too: once freed, it waits for that stream's work so far.
  void RecordStream(Block block, Stream stream) noexcept;

  // --- addresses, for callers that hold nothing else ---
  absl::StatusOr<std::uint64_t> AllocateAddress(std::uint64_t bytes, Stream stream, PoolId pool = {});
  // False when no live block that was handed out by address begins there.
  bool FreeAddress(std::uint64_t address) noexcept;
  // As RecordStream. False as above.
  bool RecordStreamOfAddress(std::uint64_t address, Stream stream) noexcept;
  // The live block that holds this address, however it was handed out; nothing where there is none. It walks the
  // blocks of one segment.
  std::optional<BlockPlace> FindBlock(std::uint64_t address) const;

  // Whether the address lies in a segment, in a live block or not, or in a range that was reserved.
  bool Holds(std::uint64_t address) const;
  // Whether blocks of about this address were handed out by address: a hint, without a lock. It may be false where a
  // block lives, and true where none does.
  bool MayHold(std::uint64_t address) const;
  // A block of exactly this range, which is free now, for a request of `requested_bytes`, handed out by its address.
  // False where it is not free as a whole.
  bool AllocateAddressAt(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t requested_bytes);
  // As AllocateAddress, at this very address: in free memory of the request's own pool and stream, cut by the rules
  // above it. What is free below it in the same block is handed out first and freed at once. kInvalidArgument: there is
  // no such memory.
  absl::Status AllocateAddressExactly(std::uint64_t bytes, Stream stream, std::uint64_t address);

  // --- memory that is cached ---
  // Completes the frees whose events are done; every Allocate does this first.
  void PollEvents();
  // Synchronises every pending free and returns all whole-free memory to the device.
  void EmptyCache();
  // Returns whole-free large segments to reclaim `target_bytes`, oldest first. The ladder does this by itself.
  void CollectGarbage(std::uint64_t target_bytes);
  // The first error that the device gave, since the last asked, to a call that answers nothing.
  absl::Status TakeDeviceError();

  // --- limits ---
  // At most `fraction` of the device's memory; [0, 1].
  absl::Status SetMemoryFraction(double fraction);
  // At most so many bytes reserved, beside the fraction; nothing = no such limit.
  void SetMemoryLimit(std::optional<std::uint64_t> bytes);
  // The lower of the two limits, if there is one.
  std::optional<std::uint64_t> limit_bytes() const;
  // Of the device, as it said when the allocator was made.
  std::uint64_t device_total_bytes() const;
  // `callback` is told before a request takes what is reserved from at most `bytes` to above: once for each crossing,
  // and no lock is held, so it may use this allocator. What it throws comes out of the request, which has changed
  // nothing.
  void SetSoftLimit(std::optional<std::uint64_t> bytes, SoftLimitCallback callback);
  // For the soft limit of the settings.
  void SetSoftLimitCallback(SoftLimitCallback callback);
  // Called when nothing in the cache fits; true = something was freed, search again. As the callback above. The number
  // by which it is removed, never 0.
  std::uint64_t AddFreeMemoryCallback(std::function<bool()> callback);
  // From then on no request calls it; one that asks just now in another thread may. False: there is none of that
  // number.
  bool RemoveFreeMemoryCallback(std::uint64_t number);

  // The page that holds this address of a live block in an expandable segment, for another process of the machine.
  // kInvalidArgument: there is no such block; else why the device does not share it.
  absl::StatusOr<SharedPage> SharePage(std::uint64_t address);

  // --- private pools (pool.h has them by handle) ---
  // A new pool with one user, under an id that no pool had before.
  PoolId CreatePool(const PoolTraits& traits = {});
  // Made on first use, with one user, under an id of the caller's.
  void ConfigurePool(PoolId pool, const PoolTraits& traits);
  // Where the pool's segments come from, in place of the device; made on first use, with one user. They are never
  // expandable. kFailedPrecondition: it has memory already, or a tag.
  absl::Status SetPoolMemory(PoolId pool, std::shared_ptr<PoolMemory> memory);
  // One user more, and one less. What is free in a pool stays there while it has users.
  void RetainPool(PoolId pool);
  void ReleasePool(PoolId pool);
  std::uint64_t PoolUseCount(PoolId pool) const;
  // Returns what is whole-free in this pool. kFailedPrecondition while it has users.
  absl::Status EmptyPool(PoolId pool);
  // From now on requests for the default pool go to this one, if `filter` accepts their stream; of several routes the
  // youngest that accepts. The pool has one user more, whom ReleasePool ends. The filter must not use the allocator.
  // kFailedPrecondition: the pool has a route already; kInvalidArgument: there is no filter.
  //
  // With RouteKind::kCapture, until EndPool, no call to the device waits, returns memory or names an event: a request
  // that the cache and new memory cannot serve is out of memory, and frees that wait for other streams begin to wait
  // when the last capture ends.
  absl::Status BeginPool(PoolId pool, StreamFilter filter, RouteKind kind = RouteKind::kPlain);
  // kFailedPrecondition: the pool has no route.
  absl::Status EndPool(PoolId pool);
  // A graph is captured from now on through the pool's plain route, which becomes a RouteKind::kCapture; or no more,
  // and the route is plain again. kFailedPrecondition: the pool has no such route; kInvalidArgument: it has a tag.
  absl::Status BeginCapture(PoolId pool);
  absl::Status EndCapture(PoolId pool);

  // --- sleep (sleep.h, docs/library/sleep.md) ---
  // Names the pool, made on first use with one user: several may have one name. Its new memory is of expandable
  // segments from here on, where the device has them. What is free in it goes back to the device as from a pool without
  // users. kFailedPrecondition: a graph is being captured in it; kInvalidArgument: it is the default pool, or the tag
  // is empty.
  absl::Status TagPool(PoolId pool, absl::string_view tag);
  // Empties the cache, waits for the streams that use the pools, keeps what live blocks hold, and gives all their pages
  // back; blocks and addresses stay. Until Wake the memory must not be touched: its blocks may be freed, a request for
  // such a pool is kFailedPrecondition, and RecordStream leaves that in TakeDeviceError. Pools that sleep already are
  // passed over. kFailedPrecondition: a graph is being captured, or a pool has memory of cudaMalloc, whose addresses
  // would go. Where this fails nothing more sleeps than before.
  absl::StatusOr<SleepReport> Sleep(const SleepOptions& options);
  // The same bytes at the same addresses: of all these pools, or, where this fails, of none. What is kept stays kept
  // then. kResourceExhausted: out of memory, after the cache was emptied, with its report.
  absl::Status Wake(const SleepingPools& wanted = {});
  // Whether the address lies in a pool that sleeps.
  bool IsAsleep(std::uint64_t address) const;
  // Whose the device's memory in use is, the largest part first: pools that are awake, and what is outside this
  // allocator, together all that the device has given. Asks the device.
  std::vector<HeldPart> Held() const;

  // --- ranges that somebody else uses as they are: a communication library, a network card, another process ---
  // Until UnregisterRange nothing of the range is given back to the device: not by EmptyCache, not by garbage
  // collection, not where pages move to; and its pool does not sleep (SleepReport::left_bytes). Ranges may overlap. One
  // line on stderr, once, where it lies in an expandable segment, which some network cards reach slowly.
  // kInvalidArgument: it does not lie in one segment; kFailedPrecondition: its pool sleeps.
  absl::Status RegisterRange(const void* address, std::uint64_t size_bytes);
  // The youngest that begins there. kInvalidArgument: none does.
  absl::Status UnregisterRange(const void* address);

  // --- what it holds and did ---
  Stats stats() const;
  // Bytes that each private pool holds of the device; one that ended keeps its peak and its sums.
  std::map<PoolId, PoolStat> reserved_by_pools() const;
  // Every peak of the statistics is the current value again.
  void ResetPeaks();
  // Those that it was made with.
  const Options& options() const;
  // Those in force.
  Options settings() const;
  // From now on these settings, as if the allocator had been made with this text: a key that it does not name has its
  // default. Settings that decide about requests to come may differ from those in force (docs/library/settings.md has
  // which). kInvalidArgument: a bad key or value, or one that cannot change; nothing has changed then. No call to the
  // device. A recording says so, and replays.
  absl::Status ChangeSettings(absl::string_view conf);
  // By address; of a pool that sleeps as it was.
  std::vector<SegmentInfo> Segments() const;
  // Writes the state as it is into a file for `ashlar explain` (docs/library/failure.md). `path` may have %p for the
  // process's number and %h for the host; a file of that name is replaced, as a whole. Errors name the file;
  // kFailedPrecondition: a recorder is writing it.
  absl::Status DumpSnapshot(const std::string& path) const;
  // Tells `observer` of every event from now on; an empty one ends it, and is told of nothing more when this returns.
  // Beside a recorder; all threads share one lock meanwhile.
  void SetObserver(EventObserver observer);
  // Has compute-sanitizer see every block as a region of its own, by NVTX, so that a kernel that writes behind its
  // block is found (docs/library/failure.md). Before the first request, and instead of a recorder; all threads share
  // one lock from then on. kFailedPrecondition: there is a recorder; kUnimplemented: built without NVTX.
  absl::Status ShowBlocksToSanitizer();
  // Whether every invariant of the accounting holds; for tests.
  absl::Status Validate() const;

 private:
  friend class Recorder;
  struct Impl;
  Impl& impl() const;  // after the destructor, the end of the program with one line
  std::atomic<Impl*> impl_;
};

}  // namespace ashlar

#endif  // ASHLAR_ALLOCATOR_H_
