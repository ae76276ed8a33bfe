// The hollow machine as one process has it: its settings, its books and the lock that guards them.
//
//   Process& process = TheProcess();                       // made at the first call
//   const std::lock_guard<std::mutex> lock(process.mutex);
//   process.devices[0]->Allocate(...);
//
// A forked child has no CUDA if its parent had: every call answers kNotInitialized, as CUDA's do.
#ifndef ASHLAR_HOLLOW_LAUNCH_PROCESS_H_
#define ASHLAR_HOLLOW_LAUNCH_PROCESS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "hollow/books/allocations.h"
#include "hollow/books/device_books.h"
#include "hollow/books/device_limits.h"
#include "hollow/books/graphs.h"
#include "hollow/books/known_bytes.h"
#include "hollow/books/peers.h"
#include "hollow/books/pools.h"
#include "hollow/books/shared_machine.h"
#include "hollow/books/streams.h"
#include "hollow/books/tally.h"
#include "hollow/books/virtual_memory.h"
#include "hollow/launch/arena.h"
#include "hollow/launch/call_log.h"
#include "hollow/launch/settings.h"

namespace ashlar::hollow {

struct Process {
  explicit Process(const Settings& from);

  const Settings settings;
  std::mutex mutex;  // guards all below, except the tally, which has its own
  SharedMachine& shared;
  FailurePlan failures;
  const Arena arena;
  Devices devices;
  Allocations allocations;
  VirtualMemory virtual_memory;
  std::map<std::uint64_t, std::unique_ptr<Pool>> pools;  // by id; the first of each device is its default
  std::vector<std::uint64_t> current_pools;              // by device
  std::map<int, DeviceLimits> limits;                    // by device
  Streams streams;
  Graphs graphs;
  Peers peers;
  KnownBytes known;
  Tally tally;
  const CallLog calls;
  // Whether the address is one of a device, allocated or not.
  bool IsDeviceAddress(std::uint64_t address) const { return address - arena.base_address < arena.total_bytes(); }
  // Tells the log of a call, where there is one. `address`: 0 where there is none.
  void TellCall(const char* call, int device, std::uint64_t bytes, std::uint64_t address, Error error) const;

  bool is_orphan = false;  // forked from a process that used a device
  // By cuInit, or by a call of the runtime or of a library above it; until then the driver's calls answer
  // kNotInitialized. Any thread, without the lock.
  std::atomic<bool> is_initialized = false;
  void Initialize() {
    if (!is_initialized.load(std::memory_order_relaxed)) is_initialized.store(true, std::memory_order_relaxed);
  }
};

Process& TheProcess();
bool HasProcess();  // whether it was made
// Of the calling thread.
int& CurrentDevice();

const Settings& TheSettings();
std::uint64_t UsedBytes(int device);  // of all processes, contexts included
std::uint64_t TotalBytes(int device);
std::vector<ProcessUse> ProcessesOn(int device);

// What the driver takes for a handle of cuBLAS (DeviceBooks::HoldForCublas), on the current device.
struct CublasHold {
  int device = 0;
  std::uint64_t number = 0;
};
CublasHold HoldForCublas();
void ReturnHold(const CublasHold& hold);

bool IsKnown(std::uint64_t address, std::uint64_t bytes);
void Know(std::uint64_t address, std::uint64_t bytes);
void Forget(std::uint64_t address, std::uint64_t bytes);

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_LAUNCH_PROCESS_H_
