#include "hollow/api/cuda/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "hollow/api/cuda/loaded_code.h"
#include "hollow/api/cuda/streams.h"
#include "hollow/process/process.h"

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
  DeviceModel& device = *process.devices[CurrentDevice()];
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
      it->second = std::make_unique<PoolModel>(*process.devices[device], device, id, 0);
      ++it;
    } else {
      it = process.pools.erase(it);
    }
  }
  process.current_pools[device] = static_cast<std::uint64_t>(device) + 1;
  process.limits.erase(device);
  process.devices[device]->DropContext();
  RenewSymbols();
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

namespace {

bool IsDevice(const Process& process, int device) { return device >= 0 && device < process.settings.devices; }

PoolModel& DefaultOf(Process& process, int device) { return *process.pools.at(static_cast<std::uint64_t>(device) + 1); }

}  // namespace

void* PoolHandle(std::uint64_t id) { return PointerTo(id << 8 | 0x70); }

PoolModel* PoolOf(Process& process, const void* handle) {
  const std::uint64_t bits = AddressOf(handle);
  const auto it = process.pools.find(bits >> 8);
  return (bits & 0xff) != 0x70 || it == process.pools.end() ? nullptr : it->second.get();
}

Error AllocateFromPool(Process& process, std::uint64_t id, std::size_t bytes, void* stream, void** pointer) {
  if (pointer == nullptr) return Error::kInvalidValue;
  *pointer = nullptr;
  PoolModel& pool = *process.pools.at(id);
  if (const Error error = UseDevice(process, pool.ordinal()); error != Error::kNone) return error;
  StreamModel* ordered = StreamOf(process, stream);
  if (ordered == nullptr) return Error::kInvalidHandle;
  if (ordered->capture != nullptr && !ordered->capture->is_valid) return Error::kCaptureInvalidated;
  if (bytes == 0) return Error::kNone;
  std::uint64_t address = 0;
  const Error allocated = pool.Allocate(bytes, process.allocations, &address);
  process.TellCall("allocate_async", pool.ordinal(), bytes, address, allocated);
  if (allocated != Error::kNone) return allocated;
  *pointer = PointerTo(address);
  if (ordered->capture == nullptr) return Error::kNone;
  bool runs_now = false;
  const Error error = process.streams.Submit(*ordered, NodeKind::kMemoryAlloc, {}, &runs_now);
  if (error == Error::kNone) ordered->frontier.front()->memory = GraphMemory(process, address);
  return error;
}

std::shared_ptr<const void> GraphMemory(Process& process, std::uint64_t address) {
  const auto free = [&process, id = process.allocations.At(address)->id](const void* memory) {
    const Allocation* allocation = process.allocations.At(AddressOf(memory));
    if (allocation == nullptr || allocation->id != id) return;  // the program freed it
    ForgetBytes(process, allocation->address, allocation->size_bytes);
    process.pools.at(allocation->part)->Free(allocation->address, process.allocations);
  };
  return {PointerTo(address), free};
}

Error FreeAsync(Process& process, void* pointer, void* stream) {
  if (pointer == nullptr) return Error::kNone;
  const Allocation* allocation = process.allocations.At(AddressOf(pointer));
  StreamModel* ordered = StreamOf(process, stream);
  if (ordered == nullptr) return Error::kInvalidHandle;
  if (allocation == nullptr || allocation->is_on_host()) return Error::kInvalidValue;
  if (allocation->kind != MemoryKind::kPool) return Free(process, pointer);
  if (ordered->capture != nullptr) {  // its memory stays until the graph goes
    bool runs_now = false;
    return process.streams.Submit(*ordered, NodeKind::kMemoryFree, {}, &runs_now);
  }
  const Allocation freed = *allocation;
  ForgetBytes(process, freed.address, freed.size_bytes);
  process.pools.at(freed.part)->Free(freed.address, process.allocations);
  process.TellCall("free_async", freed.device, freed.size_bytes, freed.address, Error::kNone);
  return Error::kNone;
}

void TrimPools(Process& process, int device) {
  for (auto& [id, pool] : process.pools) {
    if (pool->ordinal() == device) pool->Synchronized();
  }
}

Error MakePool(Process& process, const abi::PoolProps& props, void** pool) {
  constexpr int kDevice = 1;
  if (pool == nullptr || props.location.type != kDevice) return Error::kInvalidValue;
  if (props.location.id < 0 || props.location.id >= process.settings.devices) return Error::kInvalidDevice;
  const std::uint64_t id = process.pools.rbegin()->first + 1;
  DeviceModel& device = *process.devices[props.location.id];
  process.pools.emplace(id, std::make_unique<PoolModel>(device, props.location.id, id, props.max_size));
  *pool = PoolHandle(id);
  return Error::kNone;
}

Error DestroyPool(Process& process, void* handle) {
  PoolModel* pool = PoolOf(process, handle);
  if (pool == nullptr || pool->id() <= process.devices.size()) return Error::kInvalidValue;
  for (int device = 0; device < process.settings.devices; ++device) {
    std::uint64_t& current = process.current_pools[device];
    if (current == pool->id()) current = static_cast<std::uint64_t>(device) + 1;
  }
  if (!pool->is_empty()) return Error::kNone;  // CUDA keeps it until its last block is freed: so do we, to the end
  pool->TrimTo(0);
  process.pools.erase(pool->id());
  return Error::kNone;
}

// cudaMemPoolAttr: 1 to 3 the reuse policies (int), 4 the release threshold, 5 to 8 what is reserved and used (uint64).
Error SetPoolAttribute(Process& process, void* handle, int attribute, const void* value) {
  PoolModel* pool = PoolOf(process, handle);
  if (pool == nullptr || value == nullptr) return Error::kInvalidValue;
  std::uint64_t number = 0;
  std::memcpy(&number, value, attribute <= 3 ? sizeof(int) : sizeof(number));
  if (attribute >= 1 && attribute <= 3) {
    pool->attributes[attribute] = static_cast<int>(number);
  } else if (attribute == 4) {
    pool->release_threshold = number;
  } else if (attribute == 6 && number == 0) {
    pool->use.reserved_high = pool->use.reserved;
  } else if (attribute == 8 && number == 0) {
    pool->use.used_high = pool->use.used;
  } else {
    return Error::kInvalidValue;
  }
  return Error::kNone;
}

Error GetPoolAttribute(Process& process, void* handle, int attribute, void* value) {
  const PoolModel* pool = PoolOf(process, handle);
  if (pool == nullptr || value == nullptr || attribute < 1 || attribute > 8) return Error::kInvalidValue;
  if (attribute <= 3) {
    const auto it = pool->attributes.find(attribute);
    const int number = it == pool->attributes.end() ? 1 : it->second;
    std::memcpy(value, &number, sizeof(number));
    return Error::kNone;
  }
  const std::uint64_t numbers[] = {pool->release_threshold, pool->use.reserved, pool->use.reserved_high, pool->use.used,
                                   pool->use.used_high};
  std::memcpy(value, &numbers[attribute - 4], sizeof(numbers[0]));
  return Error::kNone;
}

Error TrimPool(Process& process, void* handle, std::size_t keep_bytes) {
  PoolModel* pool = PoolOf(process, handle);
  if (pool == nullptr) return Error::kInvalidValue;
  pool->TrimTo(keep_bytes);
  return Error::kNone;
}

Error SetPoolAccess(Process& process, void* handle, const abi::AccessDesc* access, std::size_t count) {
  PoolModel* pool = PoolOf(process, handle);
  if (pool == nullptr || (access == nullptr && count > 0)) return Error::kInvalidValue;
  for (std::size_t i = 0; i < count; ++i) pool->access[access[i].location.id] = access[i].flags;
  return Error::kNone;
}

Error GetPoolAccess(Process& process, void* handle, const abi::Location* location, int* flags) {
  const PoolModel* pool = PoolOf(process, handle);
  if (pool == nullptr || flags == nullptr || location == nullptr) return Error::kInvalidValue;
  const auto it = pool->access.find(location->id);
  *flags = location->id == pool->ordinal() ? 3 : it == pool->access.end() ? 0 : it->second;
  return Error::kNone;
}

Error DefaultPool(Process& process, int device, void** pool) {
  if (pool == nullptr) return Error::kInvalidValue;
  if (!IsDevice(process, device)) return Error::kInvalidDevice;
  *pool = PoolHandle(DefaultOf(process, device).id());
  return Error::kNone;
}

Error CurrentPool(Process& process, int device, void** pool) {
  if (pool == nullptr) return Error::kInvalidValue;
  if (!IsDevice(process, device)) return Error::kInvalidDevice;
  *pool = PoolHandle(process.current_pools[device]);
  return Error::kNone;
}

Error SetCurrentPool(Process& process, int device, void* handle) {
  const PoolModel* pool = PoolOf(process, handle);
  if (pool == nullptr) return Error::kInvalidValue;
  if (!IsDevice(process, device) || pool->ordinal() != device) return Error::kInvalidDevice;
  process.current_pools[device] = pool->id();
  return Error::kNone;
}

Error GetGraphMemory(Process& process, int device, int attribute, void* value) {
  if (!IsDevice(process, device)) return Error::kInvalidDevice;
  if (value == nullptr || attribute < 0 || attribute > 3) return Error::kInvalidValue;
  const PoolUse& use = DefaultOf(process, device).use;
  const std::uint64_t numbers[] = {use.used, use.used_high, use.reserved, use.reserved_high};
  std::memcpy(value, &numbers[attribute], sizeof(numbers[0]));
  return Error::kNone;
}

Error ResetGraphMemory(Process& process, int device, int attribute) {
  if (!IsDevice(process, device)) return Error::kInvalidDevice;
  PoolUse& use = DefaultOf(process, device).use;
  if (attribute != 1 && attribute != 3) return Error::kInvalidValue;
  (attribute == 1 ? use.used_high : use.reserved_high) = attribute == 1 ? use.used : use.reserved;
  return Error::kNone;
}

Error TrimGraphMemory(Process& process, int device) {
  if (!IsDevice(process, device)) return Error::kInvalidDevice;
  DefaultOf(process, device).TrimTo(0);
  return Error::kNone;
}

}  // namespace ashlar::hollow
