#include "hollow/surfaces/cuda_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "hollow/launch/arena.h"
#include "hollow/surfaces/cuda_pools.h"

namespace ashlar::hollow {
namespace {

constexpr std::uint64_t kPitch = 512;        // cudaDeviceProp::texturePitchAlignment is 32; drivers give rows of 512
constexpr std::uint64_t kDropFrom = 65'536;  // pages of what is smaller are not worth a call to the system
constexpr std::uint64_t kMost = std::uint64_t{1} << 60;

Error AllocateUntold(Process& process, std::size_t bytes, MemoryKind kind, void** pointer) {
  const int device = CurrentDevice();
  if (const Error error = UseDevice(process, device); error != Error::kNone) return error;
  if (const Error error = CheckUnsafe(process); error != Error::kNone) return error;
  *pointer = nullptr;
  if (bytes == 0) return Error::kNone;
  std::uint64_t address = 0;
  if (bytes > kMost) return process.devices[device]->Answer(Error::kOutOfMemory);
  const Error error = process.devices[device]->Allocate(bytes, &address);
  if (error != Error::kNone) return error;
  process.allocations.Add({address, bytes, kind, device});
  *pointer = PointerTo(address);
  return Error::kNone;
}

}  // namespace

void ForgetBytes(Process& process, std::uint64_t address, std::uint64_t bytes) {
  const bool is_touched = process.known.CountKnown(address, bytes) > 0;
  process.known.Forget(address, bytes);
  if (is_touched && bytes >= kDropFrom) DropPages(address, bytes);
}

CaptureMode& ThreadCaptureMode() {
  thread_local CaptureMode mode = CaptureMode::kGlobal;
  return mode;
}

std::uint64_t ThreadNumber() {
  static std::atomic<std::uint64_t> next = 1;
  thread_local const std::uint64_t number = next.fetch_add(1);
  return number;
}

Error CheckUnsafe(Process& process) { return process.streams.CheckUnsafeCall(ThreadCaptureMode(), ThreadNumber()); }

Error UseDevice(Process& process, int device) {
  if (process.is_orphan) return Error::kNotInitialized;
  process.Initialize();
  return process.devices[device]->UseContext();
}

Error Allocate(Process& process, std::size_t bytes, MemoryKind kind, void** pointer) {
  if (pointer == nullptr) return Error::kInvalidValue;
  const Error error = AllocateUntold(process, bytes, kind, pointer);
  const std::uint64_t address = error == Error::kNone ? AddressOf(*pointer) : 0;
  if (bytes > 0) process.TellCall("allocate", CurrentDevice(), bytes, address, error);
  return error;
}

Error AllocatePitched(Process& process, std::size_t width, std::size_t height, void** pointer, std::size_t* pitch) {
  if (pitch == nullptr) return Error::kInvalidValue;
  if (width > kMost || (height > 0 && width > kMost / height)) {
    return process.devices[CurrentDevice()]->Answer(Error::kOutOfMemory);
  }
  const std::uint64_t row = (width + kPitch - 1) / kPitch * kPitch;
  const Error error = Allocate(process, row * height, MemoryKind::kDevice, pointer);
  if (error == Error::kNone) *pitch = row;
  return error;
}

Error AllocateHost(Process& process, std::size_t bytes, unsigned flags, void** pointer) {
  if (pointer == nullptr) return Error::kInvalidValue;
  *pointer = nullptr;
  if (const Error error = UseDevice(process, CurrentDevice()); error != Error::kNone) return error;
  if (const Error error = CheckUnsafe(process); error != Error::kNone) return error;
  if (bytes == 0) return Error::kNone;
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) return Error::kOutOfMemory;
  process.allocations.Add({AddressOf(address), bytes, MemoryKind::kHost, CurrentDevice(), 0, flags});
  *pointer = address;
  return Error::kNone;
}

Error RegisterHost(Process& process, void* pointer, std::size_t bytes, unsigned flags) {
  if (pointer == nullptr || bytes == 0) return Error::kInvalidValue;
  if (const Error error = UseDevice(process, CurrentDevice()); error != Error::kNone) return error;
  if (process.allocations.Holding(AddressOf(pointer)) != nullptr) return Error::kHostMemoryAlreadyRegistered;
  process.allocations.Add({AddressOf(pointer), bytes, MemoryKind::kHostRegistered, CurrentDevice(), 0, flags});
  return Error::kNone;
}

Error UnregisterHost(Process& process, void* pointer) {
  const Allocation* allocation = process.allocations.At(AddressOf(pointer));
  if (allocation == nullptr || allocation->kind != MemoryKind::kHostRegistered) return Error::kHostMemoryNotRegistered;
  process.allocations.Remove(AddressOf(pointer));
  return Error::kNone;
}

Error FreeHost(Process& process, void* pointer) {
  if (pointer == nullptr) return Error::kNone;
  const Allocation* allocation = process.allocations.At(AddressOf(pointer));
  if (allocation == nullptr || allocation->kind != MemoryKind::kHost) return Error::kInvalidValue;
  munmap(pointer, allocation->size_bytes);
  process.allocations.Remove(AddressOf(pointer));
  return Error::kNone;
}

Error Free(Process& process, void* pointer) {
  if (const Error error = UseDevice(process, CurrentDevice()); error != Error::kNone) return error;
  if (const Error error = CheckUnsafe(process); error != Error::kNone) return error;
  if (pointer == nullptr) return Error::kNone;
  const std::uint64_t address = AddressOf(pointer);
  const Allocation* allocation = process.allocations.At(address);
  if (allocation == nullptr) return Error::kInvalidValue;
  const Allocation freed = *allocation;
  if (freed.kind == MemoryKind::kPool) return FreeAsync(process, pointer, nullptr);
  if (freed.kind != MemoryKind::kDevice && freed.kind != MemoryKind::kManaged) return Error::kInvalidValue;
  process.streams.SynchronizeDevice(freed.device);
  ForgetBytes(process, address, freed.size_bytes);
  process.allocations.Remove(address);
  const Error error = process.devices[freed.device]->Free(address);
  process.TellCall("free", freed.device, freed.size_bytes, address, error);
  return error;
}

Error ExportMemory(Process& process, void* pointer, abi::IpcHandle* handle) {
  const Allocation* allocation = process.allocations.Holding(AddressOf(pointer));
  if (handle == nullptr || allocation == nullptr || allocation->kind != MemoryKind::kDevice) {
    return Error::kInvalidValue;
  }
  ShareHandle shared = {};
  const std::uint64_t offset = AddressOf(pointer) - allocation->address;
  if (!process.shared.Export({0, allocation->device, allocation->size_bytes, offset}, shared)) {
    return Error::kOutOfMemory;
  }
  std::copy(shared.begin(), shared.end(), handle->bytes);
  return Error::kNone;
}

Error ImportMemory(Process& process, const abi::IpcHandle& handle, void** pointer) {
  if (const Error error = UseDevice(process, CurrentDevice()); error != Error::kNone) return error;
  ShareHandle shared = {};
  std::copy(std::begin(handle.bytes), std::end(handle.bytes), shared.begin());
  const std::optional<SharedMemory> memory = process.shared.Find(shared);
  if (!memory.has_value() || pointer == nullptr) return Error::kInvalidValue;
  device::DeviceMemory& addresses = process.devices[CurrentDevice()]->addresses();
  const device::PlacedMemory placed = addresses.Reserve(memory->bytes);
  if (placed.verdict != device::MemoryVerdict::kDone) return Error::kOutOfMemory;
  process.allocations.Add({placed.address, memory->bytes, MemoryKind::kImported, CurrentDevice()});
  *pointer = PointerTo(placed.address);
  return Error::kNone;
}

Error CloseImport(Process& process, void* pointer) {
  const Allocation* allocation = process.allocations.At(AddressOf(pointer));
  if (allocation == nullptr || allocation->kind != MemoryKind::kImported) return Error::kInvalidValue;
  ForgetBytes(process, allocation->address, allocation->size_bytes);
  process.devices[allocation->device]->addresses().ReleaseReservation(allocation->address);
  process.allocations.Remove(AddressOf(pointer));
  return Error::kNone;
}

Error GetMemoryInfo(Process& process, std::size_t* free_bytes, std::size_t* total_bytes) {
  DeviceBooks& device = *process.devices[CurrentDevice()];
  if (const Error error = UseDevice(process, CurrentDevice()); error != Error::kNone) return error;
  if (free_bytes != nullptr) *free_bytes = device.FreeBytes();
  if (total_bytes != nullptr) *total_bytes = device.total_bytes();
  return Error::kNone;
}

Error ResetDevice(Process& process, int device) {
  process.streams.SynchronizeDevice(device);
  process.virtual_memory.DropDevice(device);
  process.allocations.RemoveOfDevice(device);
  for (auto it = process.pools.begin(); it != process.pools.end();) {
    const std::uint64_t id = it->first;
    const bool is_default = id <= process.devices.size();
    if (it->second->ordinal() != device) {
      ++it;
    } else if (is_default) {
      it->second = std::make_unique<Pool>(*process.devices[device], device, id, 0);
      ++it;
    } else {
      it = process.pools.erase(it);
    }
  }
  process.current_pools[device] = static_cast<std::uint64_t>(device) + 1;
  process.limits.erase(device);
  process.devices[device]->DropContext();
  return Error::kNone;
}

Error GetLimit(Process& process, int limit, std::size_t* value) {
  return value == nullptr ? Error::kInvalidValue : process.limits[CurrentDevice()].Get(limit, value);
}

Error SetLimit(Process& process, int limit, std::size_t value) {
  const int device = CurrentDevice();
  if (const Error error = UseDevice(process, device); error != Error::kNone) return error;
  const std::uint64_t threads = static_cast<std::uint64_t>(process.settings.sm_count) *
                                static_cast<std::uint64_t>(process.settings.threads_per_sm);
  return process.limits[device].Set(limit, value, threads, *process.devices[device]);
}

}  // namespace ashlar::hollow
