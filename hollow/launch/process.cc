#include "hollow/launch/process.h"

#include <pthread.h>

namespace ashlar::hollow {
namespace {

Devices MakeDevices(const Settings& settings, const Arena& arena, SharedMachine& shared, FailurePlan& failures) {
  Devices out;
  for (int i = 0; i < settings.devices; ++i) {
    DeviceSetup setup;
    setup.ordinal = i;
    setup.total_bytes = settings.total_bytes;
    setup.context_bytes = settings.context_bytes;
    setup.base_address = arena.base_address + static_cast<std::uint64_t>(i) * arena.device_bytes;
    setup.span_bytes = arena.device_bytes;
    setup.address_order = settings.addresses;
    out.push_back(std::make_unique<DeviceBooks>(setup, shared, failures));
  }
  return out;
}

Process* g_process = nullptr;

bool HasContext(const Process& process) {
  for (const auto& device : process.devices) {
    if (device->has_context()) return true;
  }
  return false;
}

void BeforeFork() { g_process->mutex.lock(); }
void InParent() { g_process->mutex.unlock(); }
void InChild() {
  g_process->is_orphan = g_process->is_orphan || HasContext(*g_process);
  g_process->tally.Clear();
  g_process->mutex.unlock();
}

Process* MakeProcess() {
  g_process = new Process(ReadSettings());  // never destroyed: programs call CUDA until their very end
  pthread_atfork(BeforeFork, InParent, InChild);
  return g_process;
}

}  // namespace

Process::Process(const Settings& from)
    : settings(from),
      shared(SharedMachine::Open(settings.run_folder, settings.devices)),
      failures{settings.fail_call, settings.fail_request, settings.fail_after},
      arena(ReserveArena(settings.devices)),
      devices(MakeDevices(settings, arena, shared, failures)),
      virtual_memory(devices, allocations),
      streams({settings.lag_queries, settings.lag_ns}, settings.devices) {
  for (int i = 0; i < settings.devices; ++i) {
    const std::uint64_t id = static_cast<std::uint64_t>(i) + 1;
    pools.emplace(id, std::make_unique<Pool>(*devices[i], i, id, 0));
    current_pools.push_back(id);
  }
}

void Process::TellCall(const char* call, int device, std::uint64_t bytes, std::uint64_t address, Error error) const {
  if (!calls.is_open()) return;
  const std::uint64_t place = IsDeviceAddress(address) ? (address - arena.base_address) % arena.device_bytes : address;
  calls.Add(call, device, bytes, place, error);
}

Process& TheProcess() {
  static Process* process = MakeProcess();
  return *process;
}

bool HasProcess() { return g_process != nullptr; }

int& CurrentDevice() {
  thread_local int device = 0;
  return device;
}

const Settings& TheSettings() { return TheProcess().settings; }

std::uint64_t UsedBytes(int device) {
  Process& process = TheProcess();
  const std::lock_guard<std::mutex> lock(process.mutex);
  return process.devices[device]->UsedBytes();
}

std::uint64_t TotalBytes(int device) {
  Process& process = TheProcess();
  const std::lock_guard<std::mutex> lock(process.mutex);
  return process.devices[device]->total_bytes();
}

std::vector<ProcessUse> ProcessesOn(int device) { return TheProcess().shared.Processes(device); }

CublasHold HoldForCublas() {
  Process& process = TheProcess();
  const std::lock_guard<std::mutex> lock(process.mutex);
  const int device = CurrentDevice();
  return {device, process.devices[device]->HoldForCublas()};
}

void ReturnHold(const CublasHold& hold) {
  Process& process = TheProcess();
  const std::lock_guard<std::mutex> lock(process.mutex);
  process.devices[hold.device]->ReturnHold(hold.number);
}

bool IsKnown(std::uint64_t address, std::uint64_t bytes) {
  Process& process = TheProcess();
  const std::lock_guard<std::mutex> lock(process.mutex);
  return process.known.AreKnown(address, bytes);
}

void Know(std::uint64_t address, std::uint64_t bytes) {
  Process& process = TheProcess();
  const std::lock_guard<std::mutex> lock(process.mutex);
  process.known.Know(address, bytes);
}

void Forget(std::uint64_t address, std::uint64_t bytes) {
  Process& process = TheProcess();
  const std::lock_guard<std::mutex> lock(process.mutex);
  process.known.Forget(address, bytes);
}

}  // namespace ashlar::hollow
