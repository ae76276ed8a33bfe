#include "ashlar/allocator.h"

#include <unistd.h>

#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/api/allocator_impl.h"
#include "allocator/base/check.h"
#include "allocator/core/settings.h"
#include "allocator/core/stats.h"
#include "allocator/device/cuda_device.h"
#include "allocator/device/host_device.h"
#include "allocator/device/nvtx_memory.h"
#include "allocator/device/sim_device.h"
#include "allocator/policy/block.h"
#include "allocator/policy/options.h"
#include "ashlar/devices.h"
#include "ashlar/events.h"
#include "ashlar/options.h"
#include "ashlar/pool.h"
#include "ashlar/statistics.h"

namespace ashlar {

absl::StatusOr<Options> Options::Parse(absl::string_view conf, Compat compat, Keys keys) {
  return policy::ParseConf(conf, compat, keys);
}

absl::StatusOr<Options> Options::FromEnvironment() { return core::OptionsFromEnvironment(); }

absl::StatusOr<std::unique_ptr<Device>> OpenCudaDevice(const CudaDeviceOptions& options) {
  absl::StatusOr<std::unique_ptr<device::CudaDevice>> device = device::CudaDevice::Open(options);
  if (!device.ok()) return std::move(device).status();
  return *std::move(device);
}

namespace {

absl::Status CheckGranularity(std::uint64_t bytes, std::uint64_t least) {
  if (bytes >= least && std::has_single_bit(bytes)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("granularity_bytes: ", bytes, " is no power of two of at least ", least, " bytes"));
}

std::unique_ptr<Device> Opened(absl::StatusOr<std::unique_ptr<Device>> device) {
  if (!device.ok()) StopAtMisuse(std::string(device.status().message()));
  return *std::move(device);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> OpenHostDevice(const HostDeviceOptions& options) {
  absl::Status status = CheckGranularity(options.granularity_bytes, static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)));
  if (!status.ok()) return status;
  return std::make_unique<device::HostDevice>(options);
}

std::unique_ptr<Device> MakeHostDevice(const HostDeviceOptions& options) { return Opened(OpenHostDevice(options)); }

std::unique_ptr<Device> MakeSimulatedDevice(const SimulatedDeviceOptions& options) {
  return Opened(OpenSimulatedDevice(options));
}

absl::StatusOr<std::unique_ptr<Device>> OpenSimulatedDevice(const SimulatedDeviceOptions& options) {
  if (absl::Status status = CheckGranularity(options.granularity_bytes, 1); !status.ok()) return status;
  if (options.base_address % options.granularity_bytes != 0) {
    return absl::InvalidArgumentError(absl::StrCat("base_address: ", options.base_address,
                                                   " is no multiple of the granularity of ", options.granularity_bytes,
                                                   " bytes"));
  }
  return std::make_unique<device::SimDevice>(
      device::SimDeviceOptions{.capacity_bytes = options.capacity_bytes,
                               .granularity_bytes = options.granularity_bytes,
                               .base_address = options.base_address,
                               .events_complete_immediately = options.events_complete_immediately});
}

namespace {

// Live and pending blocks keep what was asked for; a free one's place for it holds its age.
BlockInfo InfoOf(const trace::SnapshotBlock& block) {
  const bool is_free = block.state == BlockState::kFree;
  return {block.address, block.size_bytes, is_free ? 0 : block.requested_bytes.value_or(0), block.state};
}

SegmentInfo InfoOf(const trace::SnapshotSegment& segment) {
  SegmentInfo info{.address = segment.address,
                   .size_bytes = segment.size_bytes,
                   .stream = segment.stream,
                   .pool = segment.pool,
                   .is_small_pool = segment.is_small_pool,
                   .is_expandable = segment.is_expandable,
                   .blocks = {}};
  for (const trace::SnapshotBlock& block : segment.blocks) info.blocks.push_back(InfoOf(block));
  return info;
}

}  // namespace

Block::Block(const policy::Block* record) : record_(record), address_(record == nullptr ? 0 : record->address) {}
std::uint64_t Block::size_bytes() const { return record_ == nullptr ? 0 : record_->size_bytes; }
std::uint64_t Block::requested_bytes() const { return record_ == nullptr ? 0 : record_->requested_bytes; }

Allocator::Allocator(Device* device, const Options& options) : impl_(new Impl(device, options)) {}
Allocator::~Allocator() { delete impl_.exchange(nullptr, std::memory_order_relaxed); }

absl::StatusOr<Block> Allocator::Allocate(std::uint64_t bytes, Stream stream, PoolId pool) {
  core::CachingAllocator& allocator = impl().allocator;
  if (core::Block* cached = allocator.AllocateCached(bytes, stream, pool); cached != nullptr) [[likely]]
    return Block(cached);
  absl::StatusOr<core::Block*> block = allocator.AllocateUncached(bytes, stream, pool);
  if (!block.ok()) return std::move(block).status();
  return Block(*block);
}
void Allocator::Free(Block block) noexcept { impl().allocator.Free(block.record_); }
void Allocator::RecordStream(Block block, Stream stream) noexcept {
  impl().allocator.RecordStream(block.record_, stream);
}

absl::StatusOr<std::uint64_t> Allocator::AllocateAddress(std::uint64_t bytes, Stream stream, PoolId pool) {
  return impl().allocator.AllocateAddress(bytes, stream, pool);
}
bool Allocator::FreeAddress(std::uint64_t address) noexcept { return impl().allocator.FreeAddress(address); }

bool Allocator::RecordStreamOfAddress(std::uint64_t address, Stream stream) noexcept {
  return impl().allocator.RecordStreamOfAddress(address, stream);
}
std::optional<BlockPlace> Allocator::FindBlock(std::uint64_t address) const {
  return impl().allocator.FindBlock(address);
}
bool Allocator::Holds(std::uint64_t address) const { return impl().allocator.Holds(address); }
bool Allocator::MayHold(std::uint64_t address) const { return impl().allocator.MayHold(address); }
bool Allocator::AllocateAddressAt(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t requested_bytes) {
  return impl().allocator.AllocateAt({address, size_bytes}, requested_bytes, core::HandOutAs::kAddress) != nullptr;
}
absl::Status Allocator::AllocateAddressExactly(std::uint64_t bytes, Stream stream, std::uint64_t address) {
  return impl().allocator.AllocateAddressExactly({bytes, stream, PoolId{}}, address);
}

void Allocator::PollEvents() { impl().allocator.PollEvents(); }
void Allocator::EmptyCache() { impl().allocator.EmptyCache(); }
void Allocator::CollectGarbage(std::uint64_t target_bytes) { impl().allocator.CollectGarbage(target_bytes); }
absl::Status Allocator::TakeDeviceError() { return impl().allocator.TakeDeviceError(); }

absl::Status Allocator::SetMemoryFraction(double fraction) { return impl().allocator.SetMemoryFraction(fraction); }
void Allocator::SetMemoryLimit(std::optional<std::uint64_t> bytes) { impl().allocator.SetMemoryLimit(bytes); }
std::optional<std::uint64_t> Allocator::limit_bytes() const { return impl().allocator.limit_bytes(); }
std::uint64_t Allocator::device_total_bytes() const { return impl().allocator.device_total_bytes(); }
void Allocator::SetSoftLimit(std::optional<std::uint64_t> bytes, SoftLimitCallback callback) {
  impl().allocator.SetSoftLimit(bytes, std::move(callback));
}
void Allocator::SetSoftLimitCallback(SoftLimitCallback callback) {
  impl().allocator.SetSoftLimitCallback(std::move(callback));
}
std::uint64_t Allocator::AddFreeMemoryCallback(std::function<bool()> callback) {
  return impl().allocator.AddFreeMemoryCallback(std::move(callback));
}
bool Allocator::RemoveFreeMemoryCallback(std::uint64_t number) {
  return impl().allocator.RemoveFreeMemoryCallback(number);
}

absl::StatusOr<SharedPage> Allocator::SharePage(std::uint64_t address) { return impl().allocator.SharePage(address); }

PoolId Allocator::CreatePool(const PoolTraits& traits) {
  const PoolId pool = impl().allocator.CreatePool();
  ConfigurePool(pool, traits);
  return pool;
}
void Allocator::ConfigurePool(PoolId pool, const PoolTraits& traits) {
  impl().allocator.ConfigurePool(pool, traits.use_on_oom, traits.no_split);
}
absl::Status Allocator::SetPoolMemory(PoolId pool, std::shared_ptr<PoolMemory> memory) {
  return impl().allocator.SetPoolMemory(pool, std::move(memory));
}
void Allocator::RetainPool(PoolId pool) { impl().allocator.RetainPool(pool); }
void Allocator::ReleasePool(PoolId pool) { impl().allocator.ReleasePool(pool); }
std::uint64_t Allocator::PoolUseCount(PoolId pool) const { return impl().allocator.PoolUseCount(pool); }
absl::Status Allocator::EmptyPool(PoolId pool) { return impl().allocator.EmptyPool(pool); }
absl::Status Allocator::BeginPool(PoolId pool, StreamFilter filter, RouteKind kind) {
  return impl().allocator.BeginPool(pool, std::move(filter), kind);
}
absl::Status Allocator::EndPool(PoolId pool) { return impl().allocator.EndPool(pool); }
absl::Status Allocator::BeginCapture(PoolId pool) { return impl().allocator.BeginCapture(pool); }
absl::Status Allocator::EndCapture(PoolId pool) { return impl().allocator.EndCapture(pool); }

absl::Status Allocator::TagPool(PoolId pool, absl::string_view tag) { return impl().allocator.TagPool(pool, tag); }
absl::StatusOr<SleepReport> Allocator::Sleep(const SleepOptions& options) { return impl().allocator.Sleep(options); }
absl::Status Allocator::Wake(const SleepingPools& wanted) { return impl().allocator.Wake(wanted); }
bool Allocator::IsAsleep(std::uint64_t address) const { return impl().allocator.IsAsleep(address); }
std::vector<HeldPart> Allocator::Held() const { return impl().allocator.Held(); }
absl::Status Allocator::RegisterRange(const void* address, std::uint64_t size_bytes) {
  return impl().allocator.RegisterRange(reinterpret_cast<std::uint64_t>(address), size_bytes);
}
absl::Status Allocator::UnregisterRange(const void* address) {
  return impl().allocator.UnregisterRange(reinterpret_cast<std::uint64_t>(address));
}

Stats Allocator::stats() const { return impl().allocator.stats(); }
std::map<PoolId, PoolStat> Allocator::reserved_by_pools() const { return impl().allocator.reserved_by_pools(); }
void Allocator::ResetPeaks() { impl().allocator.ResetPeaks(); }
const Options& Allocator::options() const { return impl().made_with; }
Options Allocator::settings() const { return impl().allocator.OptionsNow(); }
absl::Status Allocator::ChangeSettings(absl::string_view conf) { return impl().allocator.ChangeSettings(conf); }
std::vector<SegmentInfo> Allocator::Segments() const {
  std::vector<SegmentInfo> segments;
  for (const trace::SnapshotSegment& segment : impl().allocator.Segments()) segments.push_back(InfoOf(segment));
  return segments;
}
absl::Status Allocator::DumpSnapshot(const std::string& path) const { return impl().allocator.DumpSnapshot(path); }
void Allocator::SetObserver(EventObserver observer) {
  const std::lock_guard<std::mutex> lock(impl().observer_mutex);
  std::unique_ptr<core::ToldEvents> told = observer ? std::make_unique<core::ToldEvents>(std::move(observer)) : nullptr;
  impl().allocator.SetObserver(told.get());
  impl().observer.swap(told);
}
absl::Status Allocator::ShowBlocksToSanitizer() {
  if (!device::HasNvtx())
    return absl::UnimplementedError("this library was built without NVTX, whose headers the CUDA toolkit has");
  if (impl().allocator.AddSink(&impl().shown_blocks)) return absl::OkStatus();
  return absl::FailedPreconditionError("the allocator has a recorder, or shows its blocks already");
}
absl::Status Allocator::Validate() const { return impl().allocator.Validate(); }

Pool::Pool(Allocator& allocator, const PoolTraits& traits) : allocator_(allocator), id_(allocator.CreatePool(traits)) {}

Pool::~Pool() {
  allocator_.ReleasePool(id_);
  // What cannot be returned now, because a scope still uses the pool or a graph is being captured, EmptyCache returns.
  allocator_.EmptyPool(id_).IgnoreError();
}

PoolScope::PoolScope(const Pool& pool) : allocator_(pool.allocator()), id_(pool.id()) {
  const std::thread::id self = std::this_thread::get_id();
  const absl::Status begun = allocator_.BeginPool(id_, [self](Stream) { return std::this_thread::get_id() == self; });
  if (!begun.ok()) StopAtMisuse(absl::StrCat("PoolScope: ", begun.message()));
}

PoolScope::~PoolScope() {
  const absl::Status ended = allocator_.EndPool(id_);
  if (!ended.ok()) StopAtMisuse(absl::StrCat("PoolScope: ", ended.message()));
  allocator_.ReleasePool(id_);
}

std::vector<std::pair<std::string, std::int64_t>> TorchStatistics(const Stats& stats, const Options& options) {
  return core::MemoryStats(stats, options);
}

std::string OpenMetrics(absl::Span<const MetricsSource> sources) { return core::OpenMetricsText(sources); }

}  // namespace ashlar
