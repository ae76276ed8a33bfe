// One device's history, as torch.cuda.memory._record_memory_history asks for it: the last entries, and the stacks under
// which live blocks and segments came. What attachAllocatorTraceTracker attached is told of each entry too.
//
//   DeviceHistory history(0);
//   history.Change(rule, /*clears=*/true);          // from now on
//   ashlar_observe(allocator, DeviceHistory::Tell, &history);
//   std::vector<TraceEntry> entries = history.Entries();
//
// Threads: any. Its lock is taken under the allocator's: the allocator is never called while it is held.
#ifndef ASHLAR_ALLOCATOR_PLUGINS_TORCH_NATIVE_HISTORY_H_
#define ASHLAR_ALLOCATOR_PLUGINS_TORCH_NATIVE_HISTORY_H_

#include <c10/cuda/CUDACachingAllocator.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "allocator/plugins/torch_native/contexts.h"
#include "ashlar.h"

namespace ashlar::torch {

using c10::cuda::CUDACachingAllocator::AllocatorTraceTracker;
using c10::cuda::CUDACachingAllocator::CreateContextFn;
using c10::cuda::CUDACachingAllocator::RecordContext;
using c10::cuda::CUDACachingAllocator::TraceEntry;

struct HistoryRule {
  bool is_on = false;
  CreateContextFn gather = nullptr;
  std::size_t most_entries = 1;
  RecordContext when = RecordContext::NEVER;
  std::set<TraceEntry::Action> skips;
};

class DeviceHistory {
 public:
  explicit DeviceHistory(c10::DeviceIndex device) : device_(device) {}

  void Change(const HistoryRule& rule, bool clears);
  void Attach(AllocatorTraceTracker tracker);
  // Whether anybody is to be told of events.
  bool IsWanted() const;

  // For ashlar_observe; `history` is a DeviceHistory.
  static void Tell(void* history, const ashlar_event* event);
  // Entries that are no event of the allocator: of a snapshot, or of an annotation.
  void Add(TraceEntry::Action action, std::uint64_t address, std::uint64_t size_bytes, void* stream,
           c10::MempoolId_t pool, const std::string& metadata = {});

  // From the oldest on. Times are approximate ones.
  std::vector<TraceEntry> Entries() const;
  Context OfBlock(std::uint64_t address) const;
  Context OfSegment(std::uint64_t address) const;

 private:
  using Contexts = std::map<std::uint64_t, Context>;

  void OnEvent(const ashlar_event& event);
  Context ContextOf(const ashlar_event& event);
  void TellTrackers(const TraceEntry& entry) const;
  void Record(TraceEntry entry);

  const c10::DeviceIndex device_;
  mutable std::mutex mutex_;
  HistoryRule rule_;
  std::vector<AllocatorTraceTracker> trackers_;
  std::deque<TraceEntry> entries_;
  Contexts blocks_;    // by address: of live blocks
  Contexts segments_;  // of segments, and of ranges of pages
};

}  // namespace ashlar::torch

#endif  // ASHLAR_ALLOCATOR_PLUGINS_TORCH_NATIVE_HISTORY_H_
