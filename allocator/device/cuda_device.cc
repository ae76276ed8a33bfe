#include "allocator/device/cuda_device.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/check.h"
#include "allocator/base/units.h"
#include "allocator/device/cuda_driver.h"
#include "allocator/device/device.h"

namespace ashlar::device {
namespace {

CudaStream NativeStream(Stream stream) {
  return reinterpret_cast<CudaStream>(static_cast<std::uintptr_t>(Handle(stream)));
}

}  // namespace

bool CudaEvents::TryRecord(Entry& entry, Stream stream) {
  if (idle_.empty()) {
    CudaEvent created = nullptr;
    const int code = cuda_.event_create(&created, kCudaEventDisableTiming);
    if (code != kCudaSuccess) {
      last_error_ = CudaStatus(cuda_, ordinal_, code, "cuEventCreate");
      return false;
    }
    idle_.push_back(created);
  }
  if (const int code = cuda_.event_record(idle_.back(), NativeStream(stream)); code != kCudaSuccess) {
    last_error_ = CudaStatus(cuda_, ordinal_, code, "cuEventRecord");
    return false;
  }
  entry.event = idle_.back();
  idle_.pop_back();
  return true;
}

DeviceEvent CudaEvents::Record(Stream stream) {
  const DeviceEvent event{stream, ++sequence_};
  Entry entry{event.sequence, {}};
  if (!TryRecord(entry, stream)) {
    absl::Status status = SynchronizeStream(stream);
    if (status.ok()) return event;  // not in the queue: done
    last_error_ = std::move(status);
  }
  queues_[Handle(stream)].push_back(entry);
  return event;
}

DeviceEvent CudaEvents::Postpone(Stream stream) {
  const DeviceEvent event{stream, ++sequence_};
  queues_[Handle(stream)].push_back({event.sequence, {}});
  return event;
}

// nullptr when the event is known to be done.
CudaEvents::Entry* CudaEvents::Find(const DeviceEvent& event) {
  const auto it = queues_.find(Handle(event.stream));
  if (it == queues_.end() || event.sequence < it->second.front().sequence) return nullptr;
  Queue& queue = it->second;
  if (queue.front().sequence == event.sequence) [[likely]]
    return &queue.front();
  const auto before = [](const Entry& entry, std::uint64_t sequence) { return entry.sequence < sequence; };
  const auto found = std::lower_bound(queue.begin(), queue.end(), event.sequence, before);
  ASHLAR_CHECK(found != queue.end() && found->sequence == event.sequence);
  return &*found;
}

// A stream's work is in order: what was recorded up to `last_sequence` is done as well.
void CudaEvents::Retire(Stream stream, std::uint64_t last_sequence) {
  const auto it = queues_.find(Handle(stream));
  if (it == queues_.end()) return;
  Queue& queue = it->second;
  while (!queue.empty() && queue.front().sequence <= last_sequence) {
    if (queue.front().event.has_value()) idle_.push_back(*queue.front().event);
    queue.pop_front();
  }
  if (queue.empty()) queues_.erase(it);
}

bool CudaEvents::Query(const DeviceEvent& event) {
  Entry* entry = Find(event);
  if (entry == nullptr) return true;
  if (!entry->event.has_value() && !TryRecord(*entry, event.stream)) return false;
  const int code = cuda_.event_query(*entry->event);
  if (code == kCudaErrorNotReady) return false;
  if (code != kCudaSuccess) {
    last_error_ = CudaStatus(cuda_, ordinal_, code, "cuEventQuery");
    return false;
  }
  Retire(event.stream, event.sequence);
  return true;
}

absl::Status CudaEvents::Synchronize(const DeviceEvent& event) {
  Entry* entry = Find(event);
  if (entry == nullptr) return absl::OkStatus();
  if (!entry->event.has_value() && !TryRecord(*entry, event.stream)) return SynchronizeStream(event.stream);
  absl::Status status = CudaStatus(cuda_, ordinal_, cuda_.event_synchronize(*entry->event), "cuEventSynchronize");
  if (status.ok()) Retire(event.stream, event.sequence);
  return status;
}

absl::Status CudaEvents::SynchronizeStream(Stream stream) {
  int code = cuda_.stream_synchronize(NativeStream(stream));
  absl::Status status = CudaStatus(cuda_, ordinal_, code, "cuStreamSynchronize");
  if (code == kCudaErrorInvalidHandle) {
    // The program destroyed the stream; its work goes on, and is the device's.
    last_error_ = status;
    code = cuda_.context_synchronize();
    status = CudaStatus(cuda_, ordinal_, code, "cuCtxSynchronize");
  }
  if (status.ok()) Retire(stream, sequence_);
  return status;
}

absl::Status CudaEvents::MakeStreamWait(Stream stream, Stream awaited) {
  Entry entry;
  if (!TryRecord(entry, awaited)) return SynchronizeStream(awaited);
  const int code = cuda_.stream_wait_event(NativeStream(stream), *entry.event, kCudaStreamWaitDefault);
  idle_.push_back(*entry.event);  // the wait holds what was recorded, whatever is recorded into the event later
  if (code == kCudaSuccess) return absl::OkStatus();
  last_error_ = CudaStatus(cuda_, ordinal_, code, "cuStreamWaitEvent");
  return SynchronizeStream(awaited);
}

void CudaEvents::DestroyAll() {
  for (auto& [stream, queue] : queues_) {
    for (const Entry& entry : queue) {
      if (entry.event.has_value()) idle_.push_back(*entry.event);
    }
  }
  queues_.clear();
  for (const CudaEvent event : idle_) {
    const int code = cuda_.event_destroy(event);
    if (code != kCudaSuccess) last_error_ = CudaStatus(cuda_, ordinal_, code, "cuEventDestroy");
  }
  idle_.clear();
}

namespace {

// Which device, in the driver's words and in the user's.
struct DevicePlace {
  const CudaDriver& cuda;
  int ordinal = 0;
  CudaDeviceId device = 0;
};

absl::StatusOr<DevicePlace> FindDevice(const CudaDriver& cuda, int ordinal) {
  if (const int code = cuda.init(0); code != kCudaSuccess) {
    return absl::UnavailableError(absl::StrCat("no CUDA device: cuInit failed: ", cuda.ErrorText(code)));
  }
  int count = 0;
  const int code = cuda.device_get_count(&count);
  if (code != kCudaSuccess) return CudaStatus(cuda, ordinal, code, "cuDeviceGetCount");
  if (ordinal < 0 || ordinal >= count) {
    return absl::InvalidArgumentError(absl::StrCat("there is no CUDA device ", ordinal, ": ", count,
                                                   count == 1 ? " is" : " are", " visible, counted from 0"));
  }
  DevicePlace place{cuda, ordinal};
  const int got = cuda.device_get(&place.device, ordinal);
  if (got != kCudaSuccess) return CudaStatus(cuda, ordinal, got, "cuDeviceGet");
  return place;
}

// A driver that does not know an attribute has not what it names.
absl::StatusOr<bool> HasAttribute(const DevicePlace& place, CudaAttribute attribute) {
  int value = 0;
  const int code = place.cuda.device_get_attribute(&value, attribute, place.device);
  if (code == kCudaErrorInvalidValue) return false;
  if (code != kCudaSuccess) return CudaStatus(place.cuda, place.ordinal, code, "cuDeviceGetAttribute");
  return value != 0;
}

absl::Status RequireAttribute(const DevicePlace& place, bool is_wanted, CudaAttribute attribute, const char* what) {
  if (!is_wanted) return absl::OkStatus();
  const absl::StatusOr<bool> has = HasAttribute(place, attribute);
  if (!has.ok()) return has.status();
  if (*has) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("CUDA device ", place.ordinal, " has no ", what));
}

absl::Status CheckAttributes(const DevicePlace& place, const CudaDeviceOptions& options) {
  absl::Status status = RequireAttribute(place, options.posix_fd_handles, CudaAttribute::kPosixFdHandles,
                                         "memory that a file descriptor can export");
  status.Update(RequireAttribute(place, options.fabric_handles, CudaAttribute::kFabricHandles,
                                 "memory that a fabric handle can export"));
  status.Update(RequireAttribute(place, options.gpu_direct_rdma, CudaAttribute::kGpuDirectRdmaWithVmm,
                                 "GPUDirect RDMA to mapped memory"));
  return status;
}

CudaAllocation PagesOf(const CudaDeviceOptions& options) {
  CudaAllocation pages;
  pages.location.ordinal = options.ordinal;
  if (options.posix_fd_handles) pages.handle_types |= kCudaHandlePosixFd;
  if (options.fabric_handles) pages.handle_types |= kCudaHandleFabric;
  pages.is_gpu_direct_rdma_capable = options.gpu_direct_rdma ? 1 : 0;
  return pages;
}

absl::Status IdentifyContext(const CudaDriver& cuda, int ordinal, KnownContext& known) {
  if (!cuda.context_get_id.is_there()) return absl::OkStatus();
  return CudaStatus(cuda, ordinal, cuda.context_get_id(known.context, &known.id), "cuCtxGetId");
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaDevice>> CudaDevice::Open(const CudaDeviceOptions& options) {
  const absl::StatusOr<const CudaDriver*> driver = SystemCudaDriver();
  if (!driver.ok()) return driver.status();
  const CudaDriver& cuda = **driver;
  const absl::StatusOr<DevicePlace> place = FindDevice(cuda, options.ordinal);
  if (!place.ok()) return place.status();
  if (absl::Status status = CheckAttributes(*place, options); !status.ok()) return status;
  Facts facts{.pages = PagesOf(options),
              .must_share = options.posix_fd_handles || options.fabric_handles,
              .known = {.device = place->device}};
  if (options.posix_fd_handles_if_granted) {
    const absl::StatusOr<bool> has_files = HasAttribute(*place, CudaAttribute::kPosixFdHandles);
    if (!has_files.ok()) return has_files.status();
    if (*has_files) facts.pages.handle_types |= kCudaHandlePosixFd;
  }
  const int code = cuda.primary_retain(&facts.known.context, place->device);
  if (code != kCudaSuccess) return CudaStatus(cuda, options.ordinal, code, "cuDevicePrimaryCtxRetain");
  if (absl::Status status = ReadFacts(cuda, facts); !status.ok()) {
    cuda.primary_release(place->device);
    return status;
  }
  return std::unique_ptr<CudaDevice>(new CudaDevice(cuda, facts));
}

absl::Status CudaDevice::ReadFacts(const CudaDriver& cuda, Facts& facts) {
  const int ordinal = facts.pages.location.ordinal;
  if (absl::Status status = IdentifyContext(cuda, ordinal, facts.known); !status.ok()) return status;
  absl::Status restored;
  {
    const CudaContextScope scope(cuda, facts.known, ordinal, absl::OkStatus(), &restored);
    if (!scope.status().ok()) return scope.status();
    std::uint64_t free_bytes = 0;
    const int code = cuda.mem_get_info(&free_bytes, &facts.total_bytes);
    if (code != kCudaSuccess) return CudaStatus(cuda, ordinal, code, "cuMemGetInfo");
    if (absl::Status status = ReadGranularity(cuda, facts); !status.ok()) return status;
  }
  return restored;
}

absl::Status CudaDevice::ReadGranularity(const CudaDriver& cuda, Facts& facts) {
  if (!cuda.lookup.missing(CudaNeed::kVirtualMemory).empty()) return absl::OkStatus();
  const int ordinal = facts.pages.location.ordinal;
  const absl::StatusOr<bool> has =
      HasAttribute({cuda, ordinal, facts.known.device}, CudaAttribute::kVirtualMemoryManagement);
  if (!has.ok()) return has.status();
  if (!*has) return absl::OkStatus();
  const int code = cuda.mem_get_granularity(&facts.granularity_bytes, &facts.pages, kCudaGranularityMinimum);
  return CudaStatus(cuda, ordinal, code, "cuMemGetAllocationGranularity");
}

CudaDevice::CudaDevice(const CudaDriver& cuda, const Facts& facts)
    : cuda_(cuda),
      ordinal_(facts.pages.location.ordinal),
      known_(facts.known),
      granularity_bytes_(facts.granularity_bytes),
      total_bytes_(facts.total_bytes),
      fork_count_(ForkCount()),
      vmm_(cuda, facts.pages, facts.granularity_bytes, facts.must_share),
      events_(cuda, ordinal_, &last_error_) {}

CudaDevice::~CudaDevice() {
  {
    const CudaContextScope scope = Enter();
    if (scope.status().ok()) ReturnAll();
    Noted(scope.status()).IgnoreError();
  }
  // The last release returns what is left. What is lost is not ours to release.
  if (Lost().ok()) cuda_.primary_release(known_.device);
}

absl::Status CudaDevice::Lost() const {
  if (!lost_.ok()) return lost_;
  if (absl::IsDataLoss(last_error_)) return last_error_;
  if (fork_count_ == ForkCount()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("CUDA device ", ordinal_,
                                          " was opened before a fork, and CUDA does not work ",
                                          "in the child: open it after the fork, or start the child with exec"));
}

CudaContextScope CudaDevice::Enter() {
  lost_ = Lost();
  return CudaContextScope(cuda_, known_, ordinal_, lost_, &last_error_);
}

void CudaDevice::ReturnAll() {
  events_.DestroyAll();
  vmm_.ReturnAll().IgnoreError();
  for (const auto& [address, size_bytes] : std::exchange(segments_, {})) {
    ReturnSegment(address, size_bytes).IgnoreError();
  }
  ReturnLeftovers();
}

absl::Status CudaDevice::Noted(absl::Status status) {
  if (!status.ok()) last_error_ = status;
  return status;
}

absl::StatusOr<std::uint64_t> CudaDevice::AllocateSegment(std::uint64_t size_bytes) {
  const CudaContextScope scope = Enter();
  if (!scope.status().ok()) return Noted(scope.status());
  ReturnLeftovers();
  const RelaxedCaptureScope relaxed(cuda_, ordinal_, &last_error_);
  std::uint64_t address = 0;
  if (const int code = cuda_.mem_alloc(&address, size_bytes); code != kCudaSuccess) {
    return Noted(CudaStatus(cuda_, ordinal_, code, absl::StrCat("cuMemAlloc(", FormatBytes(size_bytes), ")"),
                            OutOfMemoryMeans::kDeviceMemory));
  }
  segments_.emplace(address, size_bytes);
  return address;
}

absl::Status CudaDevice::FreeSegment(std::uint64_t address) {
  const auto it = segments_.find(address);
  ASHLAR_CHECK(it != segments_.end());
  const std::uint64_t size_bytes = it->second;
  segments_.erase(it);
  const CudaContextScope scope = Enter();
  if (scope.status().ok()) return Noted(ReturnSegment(address, size_bytes));
  unreturned_segments_.emplace(address, size_bytes);
  unreturned_segment_bytes_ += size_bytes;
  return Noted(scope.status());
}

absl::Status CudaDevice::ReturnSegment(std::uint64_t address, std::uint64_t size_bytes) {
  const int code = cuda_.mem_free(address);
  if (code == kCudaSuccess) return absl::OkStatus();
  unreturned_segments_.emplace(address, size_bytes);
  unreturned_segment_bytes_ += size_bytes;
  return CudaStatus(cuda_, ordinal_, code, absl::StrCat("cuMemFree(", FormatBytes(size_bytes), ")"));
}

// Stops at the first that fails again; whoever wanted memory finds out by itself whether there is enough.
void CudaDevice::ReturnLeftovers() {
  if (is_capturing_) return;
  absl::Status status;
  while (status.ok() && !unreturned_segments_.empty()) {
    const auto [address, size_bytes] = *unreturned_segments_.begin();
    unreturned_segments_.erase(unreturned_segments_.begin());
    unreturned_segment_bytes_ -= size_bytes;
    status = Noted(ReturnSegment(address, size_bytes));
  }
  Noted(vmm_.ReturnLeftovers()).IgnoreError();
}

absl::Status CudaDevice::NoVirtualMemory() const {
  const std::string& missing = cuda_.lookup.missing(CudaNeed::kVirtualMemory);
  const std::string why =
      missing.empty() ? "" : absl::StrCat(" (its driver, of version ", cuda_.VersionText(), ", has no ", missing, ")");
  return absl::UnimplementedError(absl::StrCat("CUDA device ", ordinal_, " has no virtual memory management", why,
                                               ": leave out expandable_segments and policy:ashlar"));
}

absl::StatusOr<std::uint64_t> CudaDevice::Reserve(std::uint64_t size_bytes) {
  if (granularity_bytes_ == 0) return NoVirtualMemory();
  const CudaContextScope scope = Enter();
  if (!scope.status().ok()) return Noted(scope.status());
  ReturnLeftovers();
  const RelaxedCaptureScope relaxed(cuda_, ordinal_, &last_error_);
  absl::StatusOr<std::uint64_t> address = vmm_.Reserve(size_bytes);
  Noted(address.status()).IgnoreError();
  return address;
}

absl::Status CudaDevice::ReleaseReservation(std::uint64_t address) {
  const CudaContextScope scope = Enter();
  if (absl::IsDataLoss(scope.status())) {
    vmm_.LoseReservation(address);
    return Noted(scope.status());
  }
  Noted(scope.status()).IgnoreError();  // cuMemAddressFree takes no context: it is made all the same
  return Noted(vmm_.ReleaseReservation(address));
}

absl::Status CudaDevice::Map(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes) {
  const CudaContextScope scope = Enter();
  if (!scope.status().ok()) return Noted(scope.status());
  ReturnLeftovers();
  const RelaxedCaptureScope relaxed(cuda_, ordinal_, &last_error_);
  return Noted(vmm_.Map(address, size_bytes, page_bytes));
}

absl::Status CudaDevice::Unmap(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes) {
  const CudaContextScope scope = Enter();
  if (absl::IsDataLoss(scope.status())) {
    vmm_.LosePages(address, size_bytes, page_bytes);
    return Noted(scope.status());
  }
  Noted(scope.status()).IgnoreError();  // cuMemUnmap and cuMemRelease take no context either
  return Noted(vmm_.Unmap(address, size_bytes, page_bytes));
}

MemoryInfo CudaDevice::GetMemoryInfo() {
  const CudaContextScope scope = Enter();
  MemoryInfo info{0, total_bytes_};
  if (!Noted(scope.status()).ok()) return info;
  const RelaxedCaptureScope relaxed(cuda_, ordinal_, &last_error_);
  MemoryInfo now;
  const int code = cuda_.mem_get_info(&now.free_bytes, &now.total_bytes);
  return Noted(CudaStatus(cuda_, ordinal_, code, "cuMemGetInfo")).ok() ? now : info;
}

DeviceEvent CudaDevice::RecordEvent(Stream stream) {
  const CudaContextScope scope = Enter();
  return Noted(scope.status()).ok() ? events_.Record(stream) : events_.Postpone(stream);
}

bool CudaDevice::QueryEvent(const DeviceEvent& event) {
  const CudaContextScope scope = Enter();
  return Noted(scope.status()).ok() && events_.Query(event);
}

absl::Status CudaDevice::SynchronizeEvent(const DeviceEvent& event) {
  const CudaContextScope scope = Enter();
  return Noted(scope.status().ok() ? events_.Synchronize(event) : scope.status());
}

absl::Status CudaDevice::SynchronizeStream(Stream stream) {
  const CudaContextScope scope = Enter();
  return Noted(scope.status().ok() ? events_.SynchronizeStream(stream) : scope.status());
}

absl::Status CudaDevice::MakeStreamWait(Stream stream, Stream awaited) {
  const CudaContextScope scope = Enter();
  return Noted(scope.status().ok() ? events_.MakeStreamWait(stream, awaited) : scope.status());
}

namespace {

std::uint64_t NumberOf(CudaNode node) { return reinterpret_cast<std::uintptr_t>(node); }

}  // namespace

// The legacy default stream is never captured, and asking about it while another stream is would be an error.
std::optional<CapturePoint> CudaDevice::FindCapture(Stream stream) {
  if (!cuda_.stream_get_capture_info.is_there() || NativeStream(stream) == nullptr) return std::nullopt;
  const CudaContextScope scope = Enter();
  if (!scope.status().ok()) return std::nullopt;
  CapturePoint point;
  int status = 0;
  void* graph = nullptr;
  const CudaNode* nodes = nullptr;
  const CudaEdge* edges = nullptr;
  std::size_t count = 0;
  const int code =
      cuda_.stream_get_capture_info(NativeStream(stream), &status, &point.capture, &graph, &nodes, &edges, &count);
  if (code != kCudaSuccess || status != kCudaCaptureActive) return std::nullopt;
  for (std::size_t i = 0; i < count; ++i) point.nodes.push_back(NumberOf(nodes[i]));
  return point;
}

std::optional<std::vector<std::uint64_t>> CudaDevice::NodesBefore(std::uint64_t node) {
  if (!cuda_.graph_node_get_dependencies.is_there()) return std::nullopt;
  const CudaContextScope scope = Enter();
  if (!scope.status().ok()) return std::nullopt;
  const auto native = reinterpret_cast<CudaNode>(static_cast<std::uintptr_t>(node));
  std::size_t count = 0;
  if (cuda_.graph_node_get_dependencies(native, nullptr, nullptr, &count) != kCudaSuccess) return std::nullopt;
  std::vector<CudaNode> nodes(count);
  std::vector<CudaEdge> edges(count);
  if (count > 0 && cuda_.graph_node_get_dependencies(native, nodes.data(), edges.data(), &count) != kCudaSuccess)
    return std::nullopt;
  std::vector<std::uint64_t> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(NumberOf(nodes[i]));
  return out;
}

absl::StatusOr<int> CudaDevice::ExportPage(std::uint64_t address) {
  const CudaContextScope scope = Enter();
  if (!scope.status().ok()) return Noted(scope.status());
  return vmm_.Export(address);
}

absl::Status CudaDevice::NoCopies() const {
  return absl::UnimplementedError(absl::StrCat("CUDA device ", ordinal_, ": its driver has no cuMemcpyDtoHAsync or ",
                                               "cuMemcpyHtoDAsync: let Sleep keep nothing"));
}

absl::Status CudaDevice::CopyToHost(void* to, std::uint64_t address, std::uint64_t size_bytes, Stream stream) {
  const CudaContextScope scope = Enter();
  if (!scope.status().ok()) return Noted(scope.status());
  if (!cuda_.memcpy_to_host.is_there()) return NoCopies();
  const int code = cuda_.memcpy_to_host(to, address, size_bytes, NativeStream(stream));
  return Noted(CudaStatus(cuda_, ordinal_, code, absl::StrCat("cuMemcpyDtoHAsync(", FormatBytes(size_bytes), ")")));
}

absl::Status CudaDevice::CopyToDevice(std::uint64_t address, const void* from, std::uint64_t size_bytes,
                                      Stream stream) {
  const CudaContextScope scope = Enter();
  if (!scope.status().ok()) return Noted(scope.status());
  if (!cuda_.memcpy_to_device.is_there()) return NoCopies();
  const int code = cuda_.memcpy_to_device(address, from, size_bytes, NativeStream(stream));
  return Noted(CudaStatus(cuda_, ordinal_, code, absl::StrCat("cuMemcpyHtoDAsync(", FormatBytes(size_bytes), ")")));
}

void* CudaDevice::AllocateHost(std::uint64_t size_bytes) {
  const CudaContextScope scope = Enter();
  const bool is_there = cuda_.mem_host_alloc.is_there() && cuda_.mem_free_host.is_there();
  if (!Noted(scope.status()).ok() || !is_there) return nullptr;
  void* memory = nullptr;
  const int code = cuda_.mem_host_alloc(&memory, size_bytes, kCudaHostPortable);
  return Noted(CudaStatus(cuda_, ordinal_, code, absl::StrCat("cuMemHostAlloc(", FormatBytes(size_bytes), ")"))).ok()
             ? memory
             : nullptr;
}

void CudaDevice::FreeHost(void* memory) {
  const CudaContextScope scope = Enter();
  if (absl::IsDataLoss(scope.status())) return;  // it went with the context
  Noted(CudaStatus(cuda_, ordinal_, cuda_.mem_free_host(memory), "cuMemFreeHost")).IgnoreError();
}

}  // namespace ashlar::device
