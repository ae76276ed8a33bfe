// The hollow machine as one process has it: its settings, its accounting and the lock that guards it.
//
//   Process& process = TheProcess();                       // made at the first call
//   const std::lock_guard<std::mutex> lock(process.mutex);
//   process.devices[0]->Allocate(...);
//
// A forked child has no CUDA if its parent had: every call answers kNotInitialized, as CUDA's do.
#ifndef ASHLAR_HOLLOW_PROCESS_PROCESS_H_
#define ASHLAR_HOLLOW_PROCESS_PROCESS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "hollow/model/allocations.h"
#include "hollow/model/device_model.h"
#include "hollow/model/error.h"
#include "hollow/model/graphs.h"
#include "hollow/model/library_use.h"
#include "hollow/model/pools.h"
#include "hollow/model/shared_machine.h"
#include "hollow/model/streams.h"
#include "hollow/model/tally.h"
#include "hollow/model/virtual_memory.h"
#include "hollow/process/settings.h"

namespace ashlar::hollow {

// The addresses of all devices: host addresses of one reservation without backing, so that a stray read of the host
// sees zeros, and untouched memory costs nothing.
struct DeviceAddresses {
  std::uint64_t base_address = 0;
  std::uint64_t device_bytes = 0;  // addresses of each device
  int devices = 1;
  std::uint64_t total_bytes() const { return device_bytes * static_cast<std::uint64_t>(devices); }
};

// Reserves the addresses of the devices: 32 TiB for each, and where the system gives less (a limit, `ulimit -v`; a
// processor with 39 bits of addresses) the largest half, quarter, ... of it. Ends the process with one line where that
// is less than 16 times the device's memory.
DeviceAddresses ReserveAddresses(const Settings& settings);

// The bytes from `address` on are zero and cost no memory any more; only whole pages are returned.
void DropPages(std::uint64_t address, std::uint64_t bytes);

// The calls on device memory that a process makes, in order: a line each, for comparing two programs.
//
//   allocate 0 20971520 0x200000 0      a call, its device, bytes, address, and the number of CUDA's error, 0 for none
//   free 0 20971520 0x200000 0
//
// A name stands for what the runtime and the driver both have: cudaMalloc and cuMemAlloc are "allocate". The others are
// free, allocate_async, free_async, and of virtual memory reserve, create, map, set_access, unmap, release, unreserve.
// Addresses count from the device's first one; of a handle (create, release) it is the handle's number. Host memory is
// not told, nor calls with 0 bytes or a null pointer.
//
// The file is that of ASHLAR_HOLLOW_CALLS, in which %p is the process's number; without the variable nothing is
// written. Where the file or a line cannot be written (a full disk) the program goes on: one line on stderr says so,
// and the process's report has how many were lost. A line is one write, so that processes may share a file, and one
// that is killed has written what it did. Thread rule: the caller holds the process's lock.
class CallLog {
 public:
  CallLog();
  CallLog(const CallLog&) = delete;
  CallLog& operator=(const CallLog&) = delete;

  bool is_asked() const { return !path_.empty(); }
  void Add(const char* call, int device, std::uint64_t bytes, std::uint64_t place, Error error) const;
  // Calls that could not be written.
  std::uint64_t lost() const { return lost_; }

 private:
  void SayUnwritten(const char* what_then) const;  // of errno

  int file_ = -1;
  std::string path_;
  mutable std::uint64_t lost_ = 0;
};

struct Process {
  explicit Process(const Settings& from);

  const Settings settings;
  std::mutex mutex;  // guards all below, except the tally and the use of libraries, which have their own
  SharedMachine& shared;
  FailurePlan failures;
  const DeviceAddresses addresses;
  Devices devices;
  Allocations allocations;
  VirtualMemory virtual_memory;
  std::map<std::uint64_t, std::unique_ptr<PoolModel>> pools;  // by id; the first of each device is its default
  std::vector<std::uint64_t> current_pools;                   // by device
  std::map<int, DeviceLimits> limits;                         // by device
  Streams streams;
  Graphs graphs;
  Peers peers;
  KnownBytes known;
  Tally tally;
  LibraryUse library_use;
  const CallLog calls;
  // Whether the address is one of a device, allocated or not.
  bool IsDeviceAddress(std::uint64_t address) const {
    return address - addresses.base_address < addresses.total_bytes();
  }
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
// In a fork with one thread: the run's settings are read anew, as at the start of a process. False where a device was
// used before.
bool BeginRun();
// Of the calling thread.
int& CurrentDevice();

const Settings& TheSettings();
std::uint64_t UsedBytes(int device);  // of all processes, contexts included
std::uint64_t TotalBytes(int device);
std::vector<ProcessBytes> ProcessesOn(int device);

// A handle of cuBLAS is made, on the current device: what the driver takes for it (DeviceModel::HoldForCublas).
struct CublasHold {
  int device = 0;
  std::uint64_t number = 0;
};
CublasHold HoldForCublas();
void ReturnHold(const CublasHold& hold);
void NoteCudnn(const LibraryUse::Cudnn& library);  // a handle of it is made
// And a plan, of a workspace that the library says; nullopt: it was not asked, or had no answer.
void NoteCudnnPlan(const std::string& graph, std::optional<std::uint64_t> workspace_bytes);
void NoteCudnnSilence(const std::string& why);  // a question that had no answer

bool IsKnown(std::uint64_t address, std::uint64_t bytes);
void Know(std::uint64_t address, std::uint64_t bytes);
void Forget(std::uint64_t address, std::uint64_t bytes);

// Writes what a process leaves for `ashlar dry-run` when it ends: process-PID.json in the run folder.

// Writes the report, once, where this process used a device, and gives its bytes back to the others. Called at exit and
// before _exit; a process that a signal ends leaves none.
void EndProcess();

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_PROCESS_PROCESS_H_
