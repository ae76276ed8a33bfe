// CUDA's virtual memory: handles of physical memory, reservations of addresses, and which handle lies where.
//
// A handle is charged to its device when it is created, and goes back when it is released and mapped nowhere. The rules
// of addresses are device_memory.h's. A mapping is undone as it was made: a range of Unmap holds whole mappings.
//
//   std::uint64_t handle = 0, address = 0;
//   memory.Create(0, 2 * kMiB, &handle);
//   memory.Reserve(0, 64 * kMiB, 0, &address);
//   memory.Map(address, 2 * kMiB, 0, handle);
//   memory.Release(handle);                    // lives on in its mapping
//   memory.Unmap(address, 2 * kMiB);           // and is returned now
//
// Thread rule: not thread-safe.
#ifndef ASHLAR_HOLLOW_MODEL_VIRTUAL_MEMORY_H_
#define ASHLAR_HOLLOW_MODEL_VIRTUAL_MEMORY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "hollow/model/allocations.h"
#include "hollow/model/device_model.h"
#include "hollow/model/error.h"

namespace ashlar::hollow {

using Devices = std::vector<std::unique_ptr<DeviceModel>>;

inline constexpr int kHostMemory = -1;  // the device of a handle whose memory is the host's

class VirtualMemory {
 public:
  VirtualMemory(Devices& devices, Allocations& allocations) : devices_(devices), allocations_(allocations) {}

  // Sizes are multiples of the granularity, 2 MiB, as CUDA asks.
  Error Create(int device, std::uint64_t size_bytes, std::uint64_t* handle);
  // A handle of memory that another process created: charged there.
  std::uint64_t Import(int device, std::uint64_t size_bytes);
  Error Retain(std::uint64_t address, std::uint64_t* handle);  // of what is mapped there
  Error Release(std::uint64_t handle);

  // From the addresses of `device`; any device's memory may be mapped there.
  Error Reserve(int device, std::uint64_t size_bytes, std::uint64_t alignment_bytes, std::uint64_t* address);
  Error FreeReservation(std::uint64_t address, std::uint64_t size_bytes);
  Error Map(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t offset, std::uint64_t handle);
  Error Unmap(std::uint64_t address, std::uint64_t size_bytes);

  // 0: none, 1: read, 3: read and write, as CUmemAccess_flags.
  Error SetAccess(std::uint64_t address, std::uint64_t size_bytes, int device, int flags);
  Error GetAccess(std::uint64_t address, int device, int* flags) const;

  struct HandleInfo {
    int device = 0;
    std::uint64_t size_bytes = 0;
  };
  Error Describe(std::uint64_t handle, HandleInfo* info) const;
  // The device's handles and reservations are gone, with what is mapped of them or in them; what they took is the
  // context's, which goes next.
  void DropDevice(int device);

 private:
  struct Handle {
    HandleInfo info;
    std::uint64_t references = 1;  // creations and retains not yet released
    std::uint64_t mappings = 0;
    bool is_imported = false;
  };
  struct Mapping {
    std::uint64_t size_bytes = 0;
    std::uint64_t handle = 0;
    std::map<int, int> access;  // by device
  };
  struct Reservation {
    std::uint64_t size_bytes = 0;
    int device = 0;
  };
  void ReturnIfUnused(std::map<std::uint64_t, Handle>::iterator handle);
  const Reservation* Holding(std::uint64_t address) const;
  // The mappings that fill [address, address + size_bytes) and nothing besides; end, end where there are none such.
  std::pair<std::map<std::uint64_t, Mapping>::iterator, std::map<std::uint64_t, Mapping>::iterator> Whole(
      std::uint64_t address, std::uint64_t size_bytes);

  Devices& devices_;
  Allocations& allocations_;
  std::map<std::uint64_t, Handle> handles_;
  std::map<std::uint64_t, Reservation> reservations_;
  std::map<std::uint64_t, Mapping> mappings_;  // by address
  std::uint64_t next_handle_ = 1;
};

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_MODEL_VIRTUAL_MEMORY_H_
