#include "allocator/core/caching_allocator.h"

#include <pthread.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/check.h"
#include "allocator/core/output_file.h"
#include "allocator/core/state.h"
#include "allocator/core/thread_slot.h"
#include "allocator/device/device.h"
#include "allocator/policy/options.h"
#include "allocator/trace/codec.h"

namespace ashlar::core {

bool CachingAllocator::WantsSerial() const {
  const bool is_told_all = ledger_.sink() != nullptr && fast_path_.caches().keeper() == nullptr;
  return is_told_all || ledger_.observer() != nullptr || limits_.CollectGarbage() || pools_.HasRoutes() ||
         !ladder_.errors().lost().ok();
}

void CachingAllocator::NoteLoss(const ExclusiveSection& section) {
  ladder_.errors().AskIfLost(*device_);
  ChooseMode(section);
}

absl::Status CachingAllocator::CannotReturn(const char* call) const {
  if (!pools_.IsCapturing()) return ladder_.errors().lost();
  return absl::FailedPreconditionError(
      absl::StrCat(call, " would wait for the device while a graph is being captured: call it after EndPool"));
}

void CachingAllocator::PollEvents() {
  if (pending_.size() == 0) return;
  const ExclusiveSection section(caches());
  ladder_.Poll();
  ChooseMode(section);
}

void CachingAllocator::EmptyCache() {
  const ExclusiveSection section(caches());
  absl::Status status = CannotReturn("EmptyCache");
  if (status.ok()) {
    ledger_.Note(trace::fact::CacheEmptied{});
    status = ladder_.EmptyCache();
  }
  if (!status.ok()) NoteLoss(section);
  ladder_.errors().Note(status);
}

void CachingAllocator::CollectGarbage(std::uint64_t target_bytes) {
  const ExclusiveSection section(caches());
  const absl::Status status = CannotReturn("CollectGarbage");
  ladder_.errors().Note(status);
  if (!status.ok()) return;
  ledger_.Note(trace::fact::GarbageCollected{target_bytes});
  ladder_.CollectGarbage(target_bytes);
}

absl::Status CachingAllocator::TakeDeviceError() {
  const ExclusiveSection section(caches());
  return ladder_.errors().Take();
}

void CachingAllocator::NoteLimit(const ExclusiveSection& section) {
  ledger_.Note(trace::fact::LimitSet{limits_.bytes()});
  ChooseMode(section);
}

absl::Status CachingAllocator::SetMemoryFraction(double fraction) {
  const ExclusiveSection section(caches());
  absl::Status status = limits_.SetFraction(fraction);
  if (status.ok()) NoteLimit(section);
  return status;
}

void CachingAllocator::SetMemoryLimit(std::optional<std::uint64_t> bytes) {
  const ExclusiveSection section(caches());
  limits_.SetBytes(bytes);
  NoteLimit(section);
}

policy::Options CachingAllocator::OptionsNow() const {
  const ExclusiveSection section(caches());
  return ledger_.options();
}

absl::Status CachingAllocator::ChangeSettings(absl::string_view conf) {
  const ExclusiveSection section(caches());
  absl::StatusOr<policy::Options> changed = policy::ChangedSettings(ledger_.options(), conf);
  if (!changed.ok()) return changed.status();
  section.StopThreadCaches();  // a thread cache that is serving looks at them
  ledger_.SetOptions(*std::move(changed));
  ChooseMode(section);
  return absl::OkStatus();
}

std::optional<std::uint64_t> CachingAllocator::limit_bytes() const {
  const ExclusiveSection section(caches());
  return limits_.bytes();
}

void CachingAllocator::SetSoftLimit(std::optional<std::uint64_t> bytes, SoftLimitCallback callback) {
  const ExclusiveSection section(caches());
  limits_.soft().Set(bytes);
  limits_.soft().SetCallback(std::move(callback));
}

void CachingAllocator::SetSoftLimitCallback(SoftLimitCallback callback) {
  const ExclusiveSection section(caches());
  limits_.soft().SetCallback(std::move(callback));
}

std::uint64_t CachingAllocator::AddFreeMemoryCallback(std::function<bool()> callback) {
  if (!callback) StopAtMisuse("AddFreeMemoryCallback: there is no function to call: pass one");
  const ExclusiveSection section(caches());
  callbacks_.emplace(++callbacks_added_, std::move(callback));
  return callbacks_added_;
}

bool CachingAllocator::RemoveFreeMemoryCallback(std::uint64_t number) {
  decltype(callbacks_)::node_type removed;  // ends after the section
  const ExclusiveSection section(caches());
  removed = callbacks_.extract(number);
  return !removed.empty();
}

void CachingAllocator::ConfigurePool(PoolId pool, bool use_on_oom, bool no_split) {
  const ExclusiveSection section(caches());
  pools_.Configure(pool, use_on_oom, no_split);
}

absl::Status CachingAllocator::SetPoolMemory(PoolId pool, std::shared_ptr<PoolMemory> memory) {
  const ExclusiveSection section(caches());
  return pools_.SetMemory(pool, std::move(memory));
}

PoolId CachingAllocator::CreatePool() {
  const ExclusiveSection section(caches());
  return pools_.Create();
}

void CachingAllocator::RetainPool(PoolId pool) {
  const ExclusiveSection section(caches());
  pools_.Retain(pool);
}

void CachingAllocator::ReleasePool(PoolId pool) {
  const ExclusiveSection section(caches());
  pools_.Release(pool);
}

std::uint64_t CachingAllocator::PoolUseCount(PoolId pool) const {
  const ExclusiveSection section(caches());
  return pools_.UseCount(pool);
}

absl::Status CachingAllocator::EmptyPool(PoolId pool) {
  const ExclusiveSection section(caches());
  if (absl::Status status = CannotReturn("EmptyPool"); !status.ok()) return status;
  if (pool.IsDefault() || ledger_.heap().FindPair(pool) == nullptr) return absl::OkStatus();
  if (absl::Status status = pools_.CheckUnused(pool); !status.ok()) return status;
  ledger_.Note(trace::fact::PoolEmptied{pool});
  absl::Status status = ladder_.EmptyPool(pool);
  if (!status.ok()) NoteLoss(section);
  return status;
}

absl::Status CachingAllocator::BeginPool(PoolId pool, StreamFilter filter, RouteKind kind) {
  const ExclusiveSection section(caches());
  const bool was_capturing = pools_.IsCapturing();
  if (absl::Status status = pools_.Begin(pool, std::move(filter), kind); !status.ok()) return status;
  NoteCaptures(section, was_capturing);
  return absl::OkStatus();
}

absl::Status CachingAllocator::EndPool(PoolId pool) {
  StreamFilter filter;  // ends after the section
  const ExclusiveSection section(caches());
  const bool was_capturing = pools_.IsCapturing();
  if (absl::Status status = pools_.End(pool, filter); !status.ok()) return status;
  NoteCaptures(section, was_capturing);
  return absl::OkStatus();
}

absl::Status CachingAllocator::BeginCapture(PoolId pool) {
  const ExclusiveSection section(caches());
  const bool was_capturing = pools_.IsCapturing();
  if (absl::Status status = pools_.BeginCapture(pool); !status.ok()) return status;
  NoteCaptures(section, was_capturing);
  return absl::OkStatus();
}

absl::Status CachingAllocator::EndCapture(PoolId pool) {
  const ExclusiveSection section(caches());
  const bool was_capturing = pools_.IsCapturing();
  if (absl::Status status = pools_.EndCapture(pool); !status.ok()) return status;
  NoteCaptures(section, was_capturing);
  return absl::OkStatus();
}

void CachingAllocator::NoteCaptures(const ExclusiveSection& section, bool was_capturing) {
  ChooseMode(section);
  if (was_capturing == pools_.IsCapturing()) return;
  device_->SetCapturing(!was_capturing);
  if (!was_capturing) return;
  for (const CapturedFree& free : captured_.TakeAll()) WaitForStreams(free.block, free.streams);
}

void CachingAllocator::SetSink(trace::EventSink* sink) {
  const ExclusiveSection section(caches());
  UseSink(section, sink, nullptr);
}

bool CachingAllocator::AddSink(trace::EventSink* sink, JournalKeeper* keeper) {
  const ExclusiveSection section(caches());
  if (ledger_.sink() != nullptr) return false;
  UseSink(section, sink, keeper);
  return true;
}

void CachingAllocator::UseSink(const ExclusiveSection& section, trace::EventSink* sink, JournalKeeper* keeper) {
  ledger_.SetSink(sink);
  section.StopThreadCaches();
  caches().SetKeeper(keeper);
  ChooseMode(section);
}

void CachingAllocator::SetObserver(trace::EventSink* observer) {
  const ExclusiveSection section(caches());
  ledger_.SetObserver(observer);
  section.StopThreadCaches();
  ChooseMode(section);
}

void CachingAllocator::SetFailureReports(bool wanted) {
  const ExclusiveSection section(caches());
  failures_.SetWanted(wanted);
}

Stats CachingAllocator::stats() const {
  const ExclusiveSection section(caches());
  return ledger_.stats();
}

std::map<PoolId, PoolStat> CachingAllocator::reserved_by_pools() const {
  const ExclusiveSection section(caches());
  return ledger_.reserved_by_pools();
}

// What the thread caches counted is folded first, and no room above the new peaks is left with them.
void CachingAllocator::ResetPeaks() {
  const ExclusiveSection section(caches());
  section.StopThreadCaches();
  ledger_.ResetPeaks();
}

std::optional<BlockPlace> CachingAllocator::FindBlock(std::uint64_t address) const {
  const ExclusiveSection section(caches());
  return PlaceOf(ledger_.heap(), address);
}

absl::StatusOr<SharedPage> CachingAllocator::SharePage(std::uint64_t address) {
  const ExclusiveSection section(caches());
  section.StopThreadCaches();
  const std::optional<PageOfBlock> found = PageOf(ledger_.heap(), address);
  if (!found.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("SharePage: no live block in an expandable segment holds 0x%x", address));
  }
  const absl::StatusOr<int> file = device_->ExportPage(found->page.address);
  if (!file.ok()) return file.status();
  found->block->is_shared = true;
  return SharedPage{found->page.address, found->page.size_bytes, *file};
}

bool CachingAllocator::Holds(std::uint64_t address) const {
  const ExclusiveSection section(caches());
  return SegmentAt(ledger_.heap(), address) != nullptr;
}

std::vector<trace::SnapshotSegment> CachingAllocator::Segments() const {
  const ExclusiveSection section(caches());
  return SegmentsOf(ledger_.heap());
}

// The bytes are made and written when the allocator has gone on.
absl::Status CachingAllocator::DumpSnapshot(const std::string& path) const {
  trace::Snapshot state;
  {
    const ExclusiveSection section(caches());
    state = RecordedStateOf(ledger_, limits_, SegmentsOf(ledger_.heap()));
  }
  return ReplaceFile(OutputPath(path), {trace::Encode(state)});
}

absl::Status CachingAllocator::Validate() const {
  const ExclusiveSection section(caches());
  return ledger_.Validate();
}

// How an allocator begins and ends, and fork() while other threads use allocators: every allocator stands still
// meanwhile, so that the child's copy is whole. What the child may do with it is the device's to say: simulated and
// host memory is its own, a CUDA device is lost.

namespace {

device::Device* NotNull(device::Device* device) {
  if (device == nullptr) StopAtMisuse("CachingAllocator: its device is null: open one first (docs/library/devices.md)");
  return device;
}

}  // namespace

class CachingAllocator::Forks {
 public:
  // Never destroyed: allocators may outlive static destruction.
  static Forks& Instance() {
    static Forks& forks = *new Forks;
    return forks;
  }

  void Add(CachingAllocator* allocator) {
    const std::lock_guard<std::mutex> lock(mutex_);
    allocators_.push_back(allocator);
  }
  void Remove(CachingAllocator* allocator) {
    const std::lock_guard<std::mutex> lock(mutex_);
    allocators_.erase(std::find(allocators_.begin(), allocators_.end(), allocator));
  }

 private:
  Forks() {
    device::ForkCount();  // counts from now on, and before AfterInChild asks devices
    pthread_atfork([] { Instance().Before(); }, [] { Instance().After(); }, [] { Instance().AfterInChild(); });
  }

  void Before() {
    mutex_.lock();
    for (const CachingAllocator* allocator : allocators_) {
      sections_.push_back(std::make_unique<ExclusiveSection>(allocator->caches()));
      sections_.back()->StopThreadCaches();  // a lock that another thread holds would be held for ever in the child
    }
    LockSlots();
  }
  void After() {
    UnlockSlots();
    sections_.clear();
    mutex_.unlock();
  }
  void AfterInChild() {
    for (std::size_t i = 0; i < sections_.size(); ++i) allocators_[i]->BecomeForked(*sections_[i]);
    After();
  }

  std::mutex mutex_;
  std::vector<CachingAllocator*> allocators_;                // as they were made
  std::vector<std::unique_ptr<ExclusiveSection>> sections_;  // theirs, while a fork is under way
};

void CachingAllocator::BecomeForked(const ExclusiveSection& section) {
  if (ledger_.sink() != nullptr && !ledger_.sink()->OnFork()) UseSink(section, nullptr, nullptr);
  NoteLoss(section);
}

CachingAllocator::CachingAllocator(device::Device* device, policy::Options options)
    : device_(NotNull(device)),
      ledger_(std::move(options),
              [this](policy::Lane& lane, const policy::AddressRange& range) { fast_path_.Forget(lane, range); }),
      fast_path_(ledger_),
      pools_(ledger_),
      captured_(*device_),
      limits_(ledger_.options(), device->GetMemoryInfo().total_bytes),
      ladder_(ledger_, *device_, pending_, limits_, pools_),
      sleeper_(ledger_, *device_, ladder_, limits_),
      failures_(ledger_, limits_, pools_) {
  caches().BeginSerial(WantsSerial());
  Forks::Instance().Add(this);
}

CachingAllocator::~CachingAllocator() {
  caches().CheckLeft();
  if (failures_.WantsLeaks()) {
    const ExclusiveSection section(caches());
    // Memory of a lost device is gone.
    if (ladder_.errors().lost().ok()) failures_.TellLiveBlocks();
  }
  Forks::Instance().Remove(this);
  caches().Close();
}

}  // namespace ashlar::core
