// PyTorch's allocator of CUDA memory, by its own class for it (c10::cuda::CUDACachingAllocator::CUDAAllocator), over
// the C interface. Every call of PyTorch's comes here, with all that a pluggable allocator is not told.
//
//   NativeAllocator& allocator = NativeAllocator::Instance();
//   c10::cuda::CUDACachingAllocator::allocator.store(&allocator);      // install.cc; before CUDA's first use
//
// The class changes from release to release: this is compiled against the headers of the PyTorch that runs, and is used
// with no other. What a release has not is a function that nobody calls.
//
// Errors: PyTorch's exceptions, with the text of ashlar_last_error; no memory is c10::OutOfMemoryError. A free cannot
// fail: an address that is none is one line on stderr. Threads: any. It is never destroyed.
#ifndef ASHLAR_ALLOCATOR_PLUGINS_TORCH_NATIVE_ALLOCATOR_H_
#define ASHLAR_ALLOCATOR_PLUGINS_TORCH_NATIVE_ALLOCATOR_H_

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/util/ApproximateClock.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "allocator/plugins/torch/process_allocators.h"
#include "allocator/plugins/torch_native/contexts.h"
#include "allocator/plugins/torch_native/history.h"
#include "ashlar.h"

namespace ashlar::torch {

namespace native = c10::cuda::CUDACachingAllocator;
using AnnotationEntry = decltype(native::SnapshotInfo::external_annotations)::value_type;

class NativeAllocator final : public native::CUDAAllocator {
 public:
  static NativeAllocator& Instance();

  // --- memory: memory.cc ---
  c10::DataPtr allocate(std::size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* to, const void* from, std::size_t bytes) const override;
  void* raw_alloc(std::size_t bytes) override;
  void* raw_alloc_with_stream(std::size_t bytes, cudaStream_t stream) override;
  void raw_delete(void* memory) override;
  // In free memory of the current stream: no device is asked.
  c10::DataPtr allocateWithAddress(std::size_t bytes, void* address);
  void recordStream(const c10::DataPtr& memory, c10::cuda::CUDAStream stream);
  void enable(bool value) override { is_enabled_ = value; }
  bool isEnabled() const override { return is_enabled_; }
  void emptyCache(c10::MempoolId_t pool = {0, 0});
  void enablePeerAccess(c10::DeviceIndex device, c10::DeviceIndex other) override;
  cudaError_t memcpyAsync(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                          cudaStream_t stream, bool has_peer_access) override;

  // --- devices, limits, figures: figures.cc ---
  void init(int device_count) override { device_count_ = device_count; }
  bool initialized() override { return device_count_ > 0; }
  double getMemoryFraction(c10::DeviceIndex device);
  void setMemoryFraction(double fraction, c10::DeviceIndex device) override;
  native::DeviceStats getDeviceStats(c10::DeviceIndex device) override;
  void resetAccumulatedStats(c10::DeviceIndex device) override;
  void resetPeakStats(c10::DeviceIndex device) override;
  void cacheInfo(c10::DeviceIndex device, std::size_t* largest) override;
  std::vector<native::StreamSegmentSize> getExpandableSegmentSizes(c10::DeviceIndex device);
  void attachOutOfMemoryObserver(native::OutOfMemoryObserver observer) override;
  void attachOomRejectionObserver(native::OutOfMemoryObserver observer);
  std::string name() override { return "ashlar"; }

  // --- pools and checkpoints: pools.cc ---
  void beginAllocateToPool(c10::DeviceIndex device, c10::MempoolId_t pool,
                           std::function<bool(cudaStream_t)> filter) override;
  void endAllocateToPool(c10::DeviceIndex device, c10::MempoolId_t pool) override;
  void markCaptureBegin(c10::DeviceIndex device);
  void markCaptureEnd(c10::DeviceIndex device);
  void releasePool(c10::DeviceIndex device, c10::MempoolId_t pool) override;
  int getPoolUseCount(c10::DeviceIndex device, c10::MempoolId_t pool);
  void createOrIncrefPool(c10::DeviceIndex device, c10::MempoolId_t pool,
                          std::shared_ptr<native::CUDAAllocator> allocator = nullptr);
  void createOrIncrefPool(c10::DeviceIndex device, c10::MempoolId_t pool, native::CUDAAllocator* allocator);
  void ensureExistsAndIncrefPool(c10::DeviceIndex device, c10::MempoolId_t pool);
  void setUseOnOOM(c10::DeviceIndex device, c10::MempoolId_t pool, bool use_on_oom);
  void setUseOnOOM(c10::DeviceIndex device, c10::MempoolId_t pool) { setUseOnOOM(device, pool, true); }
  void setNoSplit(c10::DeviceIndex device, c10::MempoolId_t pool);
  bool checkPoolLiveAllocations(c10::DeviceIndex device, c10::MempoolId_t pool,
                                const std::unordered_set<void*>& expected) override;
  std::shared_ptr<native::AllocatorState> getCheckpointState(c10::DeviceIndex device, c10::MempoolId_t pool) override;
  native::CheckpointDelta setCheckpointPoolState(c10::DeviceIndex device,
                                                 std::shared_ptr<native::AllocatorState> state) override;

  // --- shared memory: sharing.cc ---
  void* getBaseAllocation(void* memory, std::size_t* bytes) override;
  native::ShareableHandle shareIpcHandle(void* memory) override;
  std::shared_ptr<void> getIpcDevPtr(std::string handle) override;

  // --- histories and snapshots: recording.cc ---
  native::SnapshotInfo snapshot(c10::MempoolId_t pool, bool include_traces);
  native::SnapshotInfo snapshot(c10::MempoolId_t pool) { return snapshot(pool, true); }
  bool isHistoryEnabled() override { return is_recording_; }
  void recordHistory(bool enabled, CreateContextFn gather, std::size_t most_entries, RecordContext when, bool clears,
                     const std::vector<std::string>& skips);
  void recordHistory(bool enabled, CreateContextFn gather, std::size_t most_entries, RecordContext when, bool clears) {
    recordHistory(enabled, gather, most_entries, when, clears, {});
  }
  void recordAnnotation(const std::vector<std::pair<std::string, std::string>>& values);
  void pushCompileContext(std::string& text);
  void popCompileContext();
  bool supportsUserMetadata() { return true; }
  void setUserMetadata(const std::string& text) { ThreadTexts::Mine().user_metadata = text; }
  std::string getUserMetadata() { return ThreadTexts::Mine().user_metadata; }
  void annotateMemory(const void* memory, const std::string& text);
  std::shared_ptr<c10::GatheredContext> getContextForPointer(const void* memory);
  void attachAllocatorTraceTracker(AllocatorTraceTracker tracker) override;

  // --- of this library ---
  // The text that histories give as PyTorch's settings.
  void SetSettingsText(std::string text);
  // Of all devices, those that open later too: `conf` for the allocator, `text` for histories.
  ashlar_status ChangeSettings(const std::string& text, const std::string& conf);
  void Free(void* memory);

 private:
  struct Device {
    explicit Device(c10::DeviceIndex index) : history(index) {}

    DeviceHistory history;
    std::atomic<double> fraction{1.0};
    std::atomic<std::int64_t> rejections{0};  // seen so far
    std::mutex mutex;                         // of what follows
    native::DeviceStats reset_at;             // the sums that count as 0
    bool is_observed = false;
    struct Traits {
      bool use_on_oom = false;
      bool no_split = false;
    };
    std::map<c10::MempoolId_t, Traits> pools;
    std::vector<std::pair<std::thread::id, c10::MempoolId_t>> captures;  // under way, by who began them
  };

  NativeAllocator();

  static void AtOpening(int device);
  Device& Of(c10::DeviceIndex device) const;
  // Throws where the call has failed.
  static void Expect(ashlar_status status, c10::DeviceIndex device);
  // Of the live block that holds the address.
  static std::pair<ashlar_allocator*, ashlar_block> BlockOf(const void* memory);

  c10::DeviceIndex CurrentDevice() const;
  void* Allocate(std::size_t bytes, c10::DeviceIndex device, cudaStream_t stream);
  // Who watches is told of a new block.
  static void Tell(ashlar_allocator* allocator, void* memory);
  static std::int64_t RejectionsOf(c10::DeviceIndex device);
  [[noreturn]] void Fail(ashlar_status status, c10::DeviceIndex device, std::size_t bytes);
  static void FreeOn(ashlar_allocator* allocator, void* memory);
  void SetTraits(c10::DeviceIndex device, c10::MempoolId_t pool, const std::function<void(Device::Traits&)>& change);

  Context Gather(RecordContext least) const {
    if (gather_when_.load(std::memory_order_relaxed) < static_cast<int>(least)) [[likely]]
      return nullptr;
    const CreateContextFn gather = gather_.load();
    return gather == nullptr ? nullptr : gather();
  }
  void ObserveWhereWanted(c10::DeviceIndex device);

  std::array<std::unique_ptr<Device>, kMostDevices> devices_;
  std::atomic<int> device_count_{0};
  std::atomic<bool> is_enabled_;
  std::atomic<bool> is_recording_{false};
  std::atomic<int> gather_when_{0};
  std::atomic<CreateContextFn> gather_{nullptr};
  std::mutex mutex_;  // of what follows
  std::vector<native::OutOfMemoryObserver> failure_observers_;
  std::vector<native::OutOfMemoryObserver> rejection_observers_;
  std::deque<AnnotationEntry> annotations_;
  std::size_t most_entries_ = 1;
  std::string settings_text_;
  std::string changed_conf_;  // empty: no settings were changed
  c10::ApproximateClockToUnixTimeConverter clock_;
};

}  // namespace ashlar::torch

#endif  // ASHLAR_ALLOCATOR_PLUGINS_TORCH_NATIVE_ALLOCATOR_H_
