// What the rungs of the retry ladder do with the device: get segments and pages from it, return them, and keep its
// errors.
#ifndef ASHLAR_ALLOCATOR_CORE_RUNGS_H_
#define ASHLAR_ALLOCATOR_CORE_RUNGS_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "allocator/core/ledger.h"
#include "allocator/core/limits.h"
#include "allocator/device/device.h"
#include "allocator/policy/heap.h"
#include "allocator/policy/strategy.h"

namespace ashlar::core {

// Keeps the device's errors that no call could return: the first one that nobody has taken, and the reason why the
// device is lost, if it is.
//
//   DeviceErrors errors;
//   errors.Note(device.FreeSegment(address));
//   if (!errors.lost().ok()) return errors.lost();
//
// Thread rule: not thread-safe; the allocator's exclusive section guards it.
class DeviceErrors {
 public:
  // Keeps the first that is not OK.
  void Note(const absl::Status& status) { untold_.Update(status); }
  // The first since the last asked.
  absl::Status Take() { return std::exchange(untold_, absl::OkStatus()); }

  // Asks the device, after it failed, whether it is lost. It stays lost.
  void AskIfLost(device::Device& device) {
    if (lost_.ok()) lost_ = device.Lost();
  }
  // What the device said when it was lost.
  const absl::Status& lost() const { return lost_; }

 private:
  absl::Status untold_;
  absl::Status lost_;
};

// Memory from the device, for one request: a new segment, or pages mapped into an expandable one.
//
//   DeviceGrowth growth(ledger, device, limits, errors);
//   GrowthResult grown = growth.Grow(decision);       // what it obtained is in the ledger, and in no free set
//   if (grown.block == nullptr && grown.refusal == Refusal::kOutOfMemory) ...   // the next rung
//
// Each is one rung's call of the device, and books what came of it; nothing is released or searched here. Thread rule:
// not thread-safe; the allocator's exclusive section guards it.

// Why there is no memory. kRejected: by throw_on_cudamalloc_oom, before the device was asked.
enum class Refusal : std::uint8_t { kNone, kOutOfMemory, kRejected, kDeviceError };

// A block, or why there is none.
struct GrowthResult {
  policy::Block* block = nullptr;
  Refusal refusal = Refusal::kNone;
  absl::Status error = {};  // the device's own, for kDeviceError
};

class DeviceGrowth {
 public:
  // All outlive this.
  DeviceGrowth(Ledger& ledger, device::Device& device, const Limits& limits, DeviceErrors& errors)
      : strategy_(ledger.heap().strategy()), ledger_(ledger), device_(device), limits_(limits), errors_(errors) {}

  GrowthResult Grow(const policy::Decision& decision);

 private:
  GrowthResult NewSegment(const policy::Decision& decision);
  GrowthResult GrowExpandable(const policy::Decision& decision);
  GrowthResult NewReservation(const policy::Decision& decision);
  GrowthResult Map(policy::Block* unmapped, std::uint64_t wanted_bytes);
  GrowthResult Map(policy::Block* unmapped, const policy::GrowthSize& size);
  std::uint64_t ReservationBytes(std::uint64_t page_bytes) const;
  GrowthResult Refused(std::uint64_t bytes);                             // by the device or the limit
  GrowthResult Failed(const absl::Status& status, std::uint64_t bytes);  // as the device's status says

  const policy::Strategy& strategy_;
  Ledger& ledger_;
  device::Device& device_;
  const Limits& limits_;
  DeviceErrors& errors_;
};

// Returns memory to the device: whole segments, and the whole free pages of expandable ones. The heap chooses them and
// their order; this class calls the device and books in the ledger.
//
//   DeviceRelease release(ledger, device, errors);
//   release.Garbage(target_bytes);
//   absl::Status status = release.Everything(nullptr);
//
// What could not be returned leaves the accounting all the same: it is the device's to return. Waits for nothing but
// the streams whose pages it unmaps. Thread rule: not thread-safe; the allocator's exclusive section guards it.
class DeviceRelease {
 public:
  // All outlive this.
  DeviceRelease(Ledger& ledger, device::Device& device, DeviceErrors& errors)
      : ledger_(ledger), device_(device), errors_(errors) {}

  // The whole-free large segments that garbage collection would take, to reclaim `target_bytes`.
  void Garbage(std::uint64_t target_bytes);
  // The oversize segments that make room for the plan. False: they do not suffice.
  bool Oversize(const policy::Decision& decision);
  // Whole free pages, as many as growth for the plan needs beside `spare_bytes` of the device. False: there are not as
  // many, and none is returned.
  bool PagesFor(const policy::Decision& decision, std::uint64_t spare_bytes);
  // All that is whole-free, in pools without users and the default one. `in_use`: the pool a request is under way in,
  // which stays even when nothing is left of it. The first error; what can be released is released all the same.
  absl::Status Everything(const policy::PoolPair* in_use);
  // All that is whole-free in the private pool, and the pool if nothing is left of it.
  absl::Status PrivatePool(PoolId pool);
  // All that is whole-free in the pair, whoever uses it.
  absl::Status FreeOf(const policy::PoolPair& pair);
  // How often all lanes were gone through for what may be returned, a pool each.
  std::uint64_t searches() const { return searches_; }

 private:
  // Memory that may be returned comes of frees, of pages that growth has mapped and did not need, and of ranges that
  // are not registered any more.
  struct Moment {
    std::int64_t frees = 0;
    std::uint64_t reserved_bytes = 0;
    std::uint64_t ranges_removed = 0;
    friend bool operator==(const Moment&, const Moment&) = default;
  };
  Moment Now() const {
    const policy::Heap& heap = ledger_.heap();
    return {ledger_.stats().active.all().freed(), heap.reserved_bytes(), heap.registered().removed()};
  }

  using PrivatePairs = policy::Heap::PrivatePairs;
  // Returns the next of them.
  PrivatePairs::iterator PrivatePair(PrivatePairs::iterator at, const policy::PoolPair* in_use, absl::Status& status);
  absl::Status FreeBlocksOf(const policy::Pool& pool);
  absl::Status Segment(policy::Block* whole);
  absl::Status Pages(policy::Block* block);
  absl::Status Unmap(policy::Block* block, const std::vector<policy::PageRun>& runs);
  absl::Status Reservation(policy::Block* unmapped);

  Ledger& ledger_;
  device::Device& device_;
  DeviceErrors& errors_;
  // Since when the default pools have nothing to return, and no pool a page to move: a program with many streams that
  // is out of memory again and again does not go through all of them each time.
  std::optional<Moment> nothing_left_;
  std::optional<Moment> no_pages_;
  std::uint64_t searches_ = 0;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_RUNGS_H_
