#include "tests/fake_cuda/fake_cuda.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace ashlar::device {
namespace {

constexpr std::uint64_t kMaxAddressSpace = std::uint64_t{1} << 47;

[[noreturn]] void Misuse(const char* call, const std::string& what) {
  std::fprintf(stderr, "fake CUDA: %s: %s\n", call, what.c_str());
  std::abort();
}

void Require(bool is_right, const char* call, const std::string& otherwise) {
  if (!is_right) Misuse(call, otherwise);
}

}  // namespace

FakeCuda::FakeCuda(FakeCudaOptions options)
    : options_(std::move(options)), devices_(static_cast<std::size_t>(options_.device_count)) {}

FakeCuda::~FakeCuda() {
  const char* call = "the end";
  Require(segments_.empty(), call, absl::StrCat(segments_.size(), " ranges of cudaMalloc are not freed"));
  Require(mappings_.empty(), call, absl::StrCat(mappings_.size(), " ranges are still mapped"));
  Require(memory_.empty(), call, absl::StrCat(memory_.size(), " handles are not released"));
  Require(reservations_.empty(), call, absl::StrCat(reservations_.size(), " address ranges are not freed"));
  Require(events_.empty(), call, absl::StrCat(events_.size(), " events are not destroyed"));
  for (const PerDevice& device : devices_) Require(device.retain_count == 0, call, "a primary context is retained");
}

// A runtime call's answer is also its last error until that is read.
int FakeCuda::Runtime(int code) {
  if (code != kCudaSuccess) last_error_ = code;
  return code;
}

int FakeCuda::CurrentDevice(const char* call) const {
  for (int ordinal = 0; ordinal < options_.device_count; ++ordinal) {
    if (current() == ContextOf(ordinal) && HasContext(ordinal)) return ordinal;
  }
  Misuse(call, "no device's primary context is current: the runtime would make one on device 0");
}

bool FakeCuda::Charge(int ordinal, std::uint64_t size_bytes) {
  PerDevice& device = devices_[static_cast<std::size_t>(ordinal)];
  if (size_bytes > options_.capacity_bytes - device.used_bytes) return false;
  device.used_bytes += size_bytes;
  return true;
}

// --- runtime ---

int FakeCuda::GetDeviceCount(int* count) {
  if (const auto code = Fails("cudaGetDeviceCount")) return Runtime(*code);
  *count = options_.device_count;
  return options_.device_count == 0 ? Runtime(kCudaErrorNoDevice) : kCudaSuccess;
}

int FakeCuda::Malloc(std::uint64_t* address, std::uint64_t size_bytes) {
  if (const auto code = Fails("cudaMalloc")) return Runtime(*code);
  const bool breaks_capture = is_capturing_ && capture_mode_ != CudaCaptureMode::kRelaxed;
  Require(!breaks_capture, "cudaMalloc", "a stream is being captured, and the thread's capture mode is not relaxed");
  const int ordinal = CurrentDevice("cudaMalloc");
  if (size_bytes > options_.capacity_bytes) return Runtime(kCudaErrorMemoryAllocation);
  const std::uint64_t charged = RoundUp(size_bytes, options_.granularity_bytes);
  if (!Charge(ordinal, charged)) return Runtime(kCudaErrorMemoryAllocation);
  *address = next_address_;
  next_address_ += charged + options_.granularity_bytes;
  segments_[*address] = {charged, ordinal};
  return kCudaSuccess;
}

int FakeCuda::Free(std::uint64_t address) {
  if (const auto code = Fails("cudaFree")) return Runtime(*code);
  RequireNoCapture("cudaFree");
  CurrentDevice("cudaFree");
  const auto it = segments_.find(address);
  Require(it != segments_.end(), "cudaFree", absl::StrCat(absl::Hex(address), " is not allocated"));
  devices_[static_cast<std::size_t>(it->second.ordinal)].used_bytes -= it->second.charged_bytes;
  segments_.erase(it);
  return kCudaSuccess;
}

int FakeCuda::MemGetInfo(std::uint64_t* free_bytes, std::uint64_t* total_bytes) {
  if (const auto code = Fails("cudaMemGetInfo")) return Runtime(*code);
  *total_bytes = options_.capacity_bytes;
  *free_bytes = options_.capacity_bytes - used_bytes(CurrentDevice("cudaMemGetInfo"));
  return kCudaSuccess;
}

int FakeCuda::EventCreate(CudaEvent* event) {
  if (const auto code = Fails("cudaEventCreateWithFlags")) return Runtime(*code);
  *event = CudaEvent{0xe000'0000 + next_id_++};
  events_[*event].ordinal = CurrentDevice("cudaEventCreateWithFlags");
  return kCudaSuccess;
}

FakeCuda::Event& FakeCuda::LiveEvent(const char* call, CudaEvent event) {
  const auto it = events_.find(event);
  Require(it != events_.end(), call, "this event does not exist, or was destroyed");
  Require(it->second.ordinal == CurrentDevice(call), call, "this event belongs to another device");
  return it->second;
}

int FakeCuda::EventDestroy(CudaEvent event) {
  if (const auto code = Fails("cudaEventDestroy")) return Runtime(*code);
  LiveEvent("cudaEventDestroy", event);
  events_.erase(event);
  return kCudaSuccess;
}

int FakeCuda::EventRecord(CudaEvent event, Stream stream) {
  if (const auto code = Fails("cudaEventRecord")) return Runtime(*code);
  RequireNoCapture("cudaEventRecord");
  Event& recorded = LiveEvent("cudaEventRecord", event);
  if (destroyed_.contains(stream)) return Runtime(kCudaErrorInvalidHandle);
  const auto device = stream_device_.find(stream);
  if (device != stream_device_.end() && device->second != recorded.ordinal) return Runtime(kCudaErrorInvalidHandle);
  recorded = {recorded.ordinal, true, clock_.Record(stream)};
  return kCudaSuccess;
}

bool FakeCuda::IsDone(const Event& event) const {
  return options_.events_complete_immediately || clock_.IsDone(event.point);
}

int FakeCuda::EventQuery(CudaEvent event) {
  if (const auto code = Fails("cudaEventQuery")) return Runtime(*code);
  RequireNoCapture("cudaEventQuery");
  const Event& queried = LiveEvent("cudaEventQuery", event);
  Require(queried.is_recorded, "cudaEventQuery", "this event was never recorded: it would answer done");
  return IsDone(queried) ? kCudaSuccess : Runtime(kCudaErrorNotReady);
}

int FakeCuda::EventSynchronize(CudaEvent event) {
  if (const auto code = Fails("cudaEventSynchronize")) return Runtime(*code);
  RequireNoCapture("cudaEventSynchronize");
  const Event& waited = LiveEvent("cudaEventSynchronize", event);
  Require(waited.is_recorded, "cudaEventSynchronize", "this event was never recorded: it would not wait");
  clock_.FinishEvent(waited.point);
  return kCudaSuccess;
}

int FakeCuda::StreamSynchronize(Stream stream) {
  if (const auto code = Fails("cudaStreamSynchronize")) return Runtime(*code);
  RequireNoCapture("cudaStreamSynchronize");
  CurrentDevice("cudaStreamSynchronize");
  if (destroyed_.contains(stream)) return Runtime(kCudaErrorInvalidHandle);
  clock_.FinishStream(stream);
  return kCudaSuccess;
}

int FakeCuda::StreamWaitEvent(Stream stream, CudaEvent event) {
  if (const auto code = Fails("cudaStreamWaitEvent")) return Runtime(*code);
  RequireNoCapture("cudaStreamWaitEvent");
  const Event& waited = LiveEvent("cudaStreamWaitEvent", event);
  Require(waited.is_recorded, "cudaStreamWaitEvent", "this event was never recorded: nothing would wait");
  if (destroyed_.contains(stream)) return Runtime(kCudaErrorInvalidHandle);
  if (!options_.events_complete_immediately) clock_.WaitFor(stream, waited.point);
  return kCudaSuccess;
}

int FakeCuda::ExchangeCaptureMode(CudaCaptureMode* mode) {
  if (const auto code = Fails("cudaThreadExchangeStreamCaptureMode")) return Runtime(*code);
  std::swap(*mode, capture_mode_);
  return kCudaSuccess;
}

void FakeCuda::RequireNoCapture(const char* call) const {
  Require(!is_capturing_, call, "a stream is being captured, which this call breaks");
}

int FakeCuda::DeviceSynchronize() {
  if (const auto code = Fails("cudaDeviceSynchronize")) return Runtime(*code);
  RequireNoCapture("cudaDeviceSynchronize");
  CurrentDevice("cudaDeviceSynchronize");
  clock_.FinishAll();
  return kCudaSuccess;
}

int FakeCuda::GetLastError() { return std::exchange(last_error_, kCudaSuccess); }

std::string FakeCuda::RuntimeErrorText(int code) {
  if (code == kCudaErrorMemoryAllocation) return "cudaErrorMemoryAllocation: out of memory";
  return absl::StrCat("fakeRuntimeError", code, ": an error of the fake runtime");
}

// --- driver ---

int FakeCuda::PrimaryContextRetain(CudaContext* context, int ordinal) {
  if (const auto code = Fails("cuDevicePrimaryCtxRetain")) return *code;
  if (ordinal < 0 || ordinal >= options_.device_count) return kCudaErrorInvalidDevice;
  PerDevice& device = devices_[static_cast<std::size_t>(ordinal)];
  if (device.retain_count++ == 0) device.context_id = next_id_++;
  *context = ContextOf(ordinal);
  return kCudaSuccess;
}

int FakeCuda::PrimaryContextRelease(int ordinal) {
  if (const auto code = Fails("cuDevicePrimaryCtxRelease")) return *code;
  Require(HasContext(ordinal), "cuDevicePrimaryCtxRelease", "the context is not retained");
  --devices_[static_cast<std::size_t>(ordinal)].retain_count;
  return kCudaSuccess;
}

int FakeCuda::ContextGetCurrent(CudaContext* context) {
  if (const auto code = Fails("cuCtxGetCurrent")) return *code;
  *context = current();
  return kCudaSuccess;
}

int FakeCuda::ContextGetId(CudaContext context, std::uint64_t* id) {
  if (const auto code = Fails("cuCtxGetId")) return *code;
  for (int ordinal = 0; ordinal < options_.device_count; ++ordinal) {
    *id = devices_[static_cast<std::size_t>(ordinal)].context_id;
    if (context == ContextOf(ordinal)) return *id == 0 ? kCudaErrorContextDestroyed : kCudaSuccess;
  }
  Misuse("cuCtxGetId", "this is no device's context");
}

int FakeCuda::ContextPush(CudaContext context) {
  if (const auto code = Fails("cuCtxPushCurrent")) return *code;
  Require(contexts_.size() < 8, "cuCtxPushCurrent", "contexts are pushed and not popped");
  contexts_.push_back(context);
  return kCudaSuccess;
}

int FakeCuda::ContextPop(CudaContext* context) {
  if (const auto code = Fails("cuCtxPopCurrent")) return *code;
  Require(contexts_.size() > 1, "cuCtxPopCurrent", "no context was pushed");
  *context = current();
  contexts_.pop_back();
  return kCudaSuccess;
}

int FakeCuda::GetAttribute(int* value, CudaAttribute attribute, int ordinal) {
  if (const auto code = Fails("cuDeviceGetAttribute")) return *code;
  if (ordinal < 0 || ordinal >= options_.device_count) return kCudaErrorInvalidDevice;
  *value = options_.lacks.contains(attribute) ? 0 : 1;
  return kCudaSuccess;
}

int FakeCuda::GetGranularity(std::uint64_t* size_bytes, const CudaMemoryKind& kind) {
  if (const auto code = Fails("cuMemGetAllocationGranularity")) return *code;
  last_kind_ = kind;
  *size_bytes = options_.granularity_bytes;
  return kCudaSuccess;
}

int FakeCuda::AddressReserve(std::uint64_t* address, std::uint64_t size_bytes) {
  if (const auto code = Fails("cuMemAddressReserve")) return *code;
  if (size_bytes == 0 || size_bytes % options_.granularity_bytes != 0) return kCudaErrorInvalidValue;
  if (size_bytes > kMaxAddressSpace - next_address_) return kCudaErrorMemoryAllocation;
  *address = next_address_;
  next_address_ += size_bytes + options_.granularity_bytes;
  reservations_[*address] = size_bytes;
  return kCudaSuccess;
}

int FakeCuda::AddressFree(std::uint64_t address, std::uint64_t size_bytes) {
  if (const auto code = Fails("cuMemAddressFree")) return *code;
  const auto it = reservations_.find(address);
  const bool is_whole = it != reservations_.end() && it->second == size_bytes;
  Require(is_whole, "cuMemAddressFree", "this is not a range that was reserved");
  const auto mapped = mappings_.lower_bound(address);
  const bool has_mapping = mapped != mappings_.end() && mapped->first < address + size_bytes;
  Require(!has_mapping, "cuMemAddressFree", "memory is still mapped in the range");
  reservations_.erase(it);
  return kCudaSuccess;
}

int FakeCuda::MemCreate(CudaHandle* handle, std::uint64_t size_bytes, const CudaMemoryKind& kind) {
  if (const auto code = Fails("cuMemCreate")) return *code;
  last_kind_ = kind;
  if (size_bytes == 0 || size_bytes % options_.granularity_bytes != 0) return kCudaErrorInvalidValue;
  if (!Charge(kind.ordinal, size_bytes)) return kCudaErrorMemoryAllocation;
  *handle = CudaHandle{next_id_++};
  memory_[*handle] = {size_bytes, kind.ordinal, false, 0};
  return kCudaSuccess;
}

// The memory goes when it is released and mapped nowhere, as CUDA's does.
void FakeCuda::Drop(CudaHandle handle) {
  const Memory& memory = memory_.at(handle);
  if (!memory.is_released || memory.map_count > 0) return;
  devices_[static_cast<std::size_t>(memory.ordinal)].used_bytes -= memory.size_bytes;
  memory_.erase(handle);
}

int FakeCuda::MemRelease(CudaHandle handle) {
  if (const auto code = Fails("cuMemRelease")) return *code;
  const auto it = memory_.find(handle);
  const bool is_live = it != memory_.end() && !it->second.is_released;
  Require(is_live, "cuMemRelease", "this handle does not exist, or was released");
  Require(it->second.map_count == 0, "cuMemRelease", "the handle's memory is still mapped");
  it->second.is_released = true;
  Drop(handle);
  return kCudaSuccess;
}

int FakeCuda::MemMap(std::uint64_t address, std::uint64_t size_bytes, CudaHandle handle) {
  if (const auto code = Fails("cuMemMap")) return *code;
  const auto memory = memory_.find(handle);
  const bool is_live = memory != memory_.end() && !memory->second.is_released;
  Require(is_live, "cuMemMap", "this handle does not exist, or was released");
  Require(memory->second.size_bytes == size_bytes, "cuMemMap", "the handle has another size");
  auto reservation = reservations_.upper_bound(address);
  Require(reservation != reservations_.begin(), "cuMemMap", "the range is not reserved");
  --reservation;
  Require(address + size_bytes <= reservation->first + reservation->second, "cuMemMap", "the range is not reserved");
  const auto behind = mappings_.lower_bound(address);
  Require(behind == mappings_.end() || behind->first >= address + size_bytes, "cuMemMap", "the range is mapped");
  const bool is_apart =
      behind == mappings_.begin() || std::prev(behind)->first + std::prev(behind)->second.size_bytes <= address;
  Require(is_apart, "cuMemMap", "the range is mapped");
  mappings_[address] = {size_bytes, handle, false};
  ++memory->second.map_count;
  return kCudaSuccess;
}

int FakeCuda::MemUnmap(std::uint64_t address, std::uint64_t size_bytes) {
  if (const auto code = Fails("cuMemUnmap")) return *code;
  RequireNoCapture("cuMemUnmap");
  const auto it = mappings_.find(address);
  const bool is_mapped = it != mappings_.end() && it->second.size_bytes == size_bytes;
  Require(is_mapped, "cuMemUnmap", "this range is not mapped as a whole");
  const CudaHandle handle = it->second.handle;
  mappings_.erase(it);
  --memory_.at(handle).map_count;
  Drop(handle);
  return kCudaSuccess;
}

int FakeCuda::MemSetAccess(std::uint64_t address, std::uint64_t size_bytes, int ordinal) {
  if (const auto code = Fails("cuMemSetAccess")) return *code;
  Require(ordinal >= 0 && ordinal < options_.device_count, "cuMemSetAccess", "there is no such device");
  std::uint64_t at = address;
  while (at < address + size_bytes) {
    const auto it = mappings_.find(at);
    Require(it != mappings_.end(), "cuMemSetAccess", "a part of the range is not mapped");
    it->second.has_access = true;
    at += it->second.size_bytes;
  }
  Require(at == address + size_bytes, "cuMemSetAccess", "the range ends inside a mapping");
  return kCudaSuccess;
}

bool FakeCuda::IsAccessible(std::uint64_t address) const {
  auto it = mappings_.upper_bound(address);
  if (it == mappings_.begin()) return false;
  --it;
  return address < it->first + it->second.size_bytes && it->second.has_access;
}

std::string FakeCuda::DriverErrorText(int code) {
  if (code == kCudaErrorMemoryAllocation) return "CUDA_ERROR_OUT_OF_MEMORY: out of memory";
  return absl::StrCat("FAKE_DRIVER_ERROR_", code, ": an error of the fake driver");
}

}  // namespace ashlar::device
