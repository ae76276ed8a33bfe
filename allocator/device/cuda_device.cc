#include "allocator/device/cuda_device.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/check.h"
#include "allocator/device/cuda_call.h"
#include "allocator/device/fork_count.h"

namespace ashlar::device {
namespace {

absl::StatusOr<bool> Has(CudaApi& api, CudaAttribute attribute, int ordinal) {
  int value = 0;
  const int code = api.GetAttribute(&value, attribute, ordinal);
  if (code != kCudaSuccess) return DriverStatus(api, ordinal, code, "cuDeviceGetAttribute");
  return value != 0;
}

absl::Status Require(CudaApi& api, bool is_wanted, CudaAttribute attribute, int ordinal, const char* what) {
  if (!is_wanted) return absl::OkStatus();
  const absl::StatusOr<bool> has = Has(api, attribute, ordinal);
  if (!has.ok()) return has.status();
  if (*has) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("CUDA device ", ordinal, " has no ", what));
}

absl::Status CheckOptions(CudaApi& api, const CudaDeviceOptions& options) {
  int count = 0;
  const int code = api.GetDeviceCount(&count);
  if (code != kCudaSuccess) return RuntimeStatus(api, options.ordinal, code, "cudaGetDeviceCount");
  if (options.ordinal < 0 || options.ordinal >= count) {
    return absl::InvalidArgumentError(absl::StrCat("there is no CUDA device ", options.ordinal, ": ", count,
                                                   count == 1 ? " is" : " are", " visible, counted from 0"));
  }
  absl::Status status = Require(api, options.posix_fd_handles, CudaAttribute::kPosixFdHandles, options.ordinal,
                                "memory that a file descriptor can export");
  status.Update(Require(api, options.fabric_handles, CudaAttribute::kFabricHandles, options.ordinal,
                        "memory that a fabric handle can export"));
  status.Update(Require(api, options.gpu_direct_rdma, CudaAttribute::kGpuDirectRdmaWithVmm, options.ordinal,
                        "GPUDirect RDMA to mapped memory"));
  return status;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaDevice>> CudaDevice::Open(const CudaDeviceOptions& options) {
  const absl::StatusOr<CudaApi*> api = SystemCudaApi();
  if (!api.ok()) return api.status();
  return OpenWith(*api, options);
}

absl::StatusOr<std::unique_ptr<CudaDevice>> CudaDevice::OpenWith(CudaApi* api, const CudaDeviceOptions& options) {
  if (absl::Status status = CheckOptions(*api, options); !status.ok()) return status;
  Facts facts;
  facts.kind = {options.ordinal, options.posix_fd_handles, options.fabric_handles, options.gpu_direct_rdma};
  const int code = api->PrimaryContextRetain(&facts.context.context, options.ordinal);
  if (code != kCudaSuccess) return DriverStatus(*api, options.ordinal, code, "cuDevicePrimaryCtxRetain");
  if (absl::Status status = ReadFacts(*api, facts); !status.ok()) {
    api->PrimaryContextRelease(options.ordinal);
    return status;
  }
  return std::unique_ptr<CudaDevice>(new CudaDevice(api, facts));
}

absl::Status CudaDevice::ReadFacts(CudaApi& api, Facts& facts) {
  const int ordinal = facts.kind.ordinal;
  absl::Status restored;
  const int answer = api.ContextGetId(facts.context.context, &facts.context.id);
  if (answer != kCudaSuccess) return DriverStatus(api, ordinal, answer, "cuCtxGetId");
  {
    const CudaContextScope scope(api, facts.context, ordinal, absl::OkStatus(), &restored);
    if (!scope.status().ok()) return scope.status();
    std::uint64_t free_bytes = 0;
    const int code = api.MemGetInfo(&free_bytes, &facts.total_bytes);
    if (code != kCudaSuccess) return RuntimeStatus(api, ordinal, code, "cudaMemGetInfo");
    const absl::StatusOr<bool> has_vmm = Has(api, CudaAttribute::kVirtualMemoryManagement, ordinal);
    if (!has_vmm.ok()) return has_vmm.status();
    if (*has_vmm) {
      const int found = api.GetGranularity(&facts.granularity_bytes, facts.kind);
      if (found != kCudaSuccess) return DriverStatus(api, ordinal, found, "cuMemGetAllocationGranularity");
    }
  }
  return restored;
}

CudaDevice::CudaDevice(CudaApi* api, const Facts& facts)
    : api_(*api),
      ordinal_(facts.kind.ordinal),
      context_(facts.context),
      granularity_bytes_(facts.granularity_bytes),
      total_bytes_(facts.total_bytes),
      fork_count_(ForkCount()),
      vmm_(api, facts.kind, facts.granularity_bytes),
      events_(api, facts.kind.ordinal, &last_error_) {}

CudaDevice::~CudaDevice() {
  {
    const CudaContextScope scope = Enter();
    if (scope.status().ok()) ReturnAll();
    Noted(scope.status()).IgnoreError();
  }
  // The last release returns what is left. What is lost is not ours to release.
  if (Lost().ok()) api_.PrimaryContextRelease(ordinal_);
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
  return CudaContextScope(api_, context_, ordinal_, lost_, &last_error_);
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
  const RelaxedCaptureScope relaxed(api_, ordinal_, &last_error_);
  std::uint64_t address = 0;
  if (const int code = api_.Malloc(&address, size_bytes); code != kCudaSuccess) {
    return Noted(RuntimeStatus(api_, ordinal_, code, absl::StrCat("cudaMalloc(", FormatBytes(size_bytes), ")"),
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
  const int code = api_.Free(address);
  if (code == kCudaSuccess) return absl::OkStatus();
  unreturned_segments_.emplace(address, size_bytes);
  unreturned_segment_bytes_ += size_bytes;
  return RuntimeStatus(api_, ordinal_, code, absl::StrCat("cudaFree(", FormatBytes(size_bytes), ")"));
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

absl::StatusOr<std::uint64_t> CudaDevice::Reserve(std::uint64_t size_bytes) {
  if (granularity_bytes_ == 0) {
    return absl::UnimplementedError(
        absl::StrCat("CUDA device ", ordinal_, " has no virtual memory management: leave out expandable_segments"));
  }
  const CudaContextScope scope = Enter();
  if (!scope.status().ok()) return Noted(scope.status());
  ReturnLeftovers();
  const RelaxedCaptureScope relaxed(api_, ordinal_, &last_error_);
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
  const RelaxedCaptureScope relaxed(api_, ordinal_, &last_error_);
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
  const RelaxedCaptureScope relaxed(api_, ordinal_, &last_error_);
  MemoryInfo now;
  const int code = api_.MemGetInfo(&now.free_bytes, &now.total_bytes);
  return Noted(RuntimeStatus(api_, ordinal_, code, "cudaMemGetInfo")).ok() ? now : info;
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

}  // namespace ashlar::device
