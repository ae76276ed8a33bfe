// The state that the processes of one run share about the machine's devices: how many bytes each process has in use on
// each, and the handles by which one process opens the memory of another.
//
// The accounting lies in the file `books` of the run folder, which every process maps. Without a run folder it is
// private to the process and to those it forks. A charge is:
//
//   SharedMachine machine(settings.run_folder, settings.devices);
//   SharedMachine::Lock lock(machine);
//   if (mine + bytes > total - machine.UsedByOthers(0)) machine.ForgetDead();   // may have given bytes back
//   if (mine + bytes > total - machine.UsedByOthers(0)) return kOutOfMemory;
//   machine.SetMine(0, mine + bytes);
//
// A process that died gives its bytes back at ForgetDead(), at Processes(), and at every 4096th SetMine(). A forked
// child starts with nothing in use: it takes a place of its own when it first charges. A process that holds the lock
// and dies leaves accounting that the next one sets right.
//
// Units: bytes; devices count from 0. A machine has at most 64 devices, 1024 processes at a time and 4096 handles.
// Thread rule: UsedByOthers, SetMine, ForgetDead want the Lock held; all else takes it itself, from any thread.
#ifndef ASHLAR_HOLLOW_MODEL_SHARED_MACHINE_H_
#define ASHLAR_HOLLOW_MODEL_SHARED_MACHINE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ashlar::hollow {

// Identifies a process by its number and the time it started, so that a number that was given again does not stand for
// its first owner.
//
//   ProcessId mine = ProcessId::Mine();
//   ... another process ...
//   if (!IsAlive(mine)) GiveBack(mine);
//
// A process that ended and was not waited for (a zombie) is not alive: its memory is gone.
// Units: `start` is in clock ticks after boot, as field 22 of /proc/PID/stat (man 5 proc); 0 where it cannot be read.
// Thread rule: any thread.
struct ProcessId {
  std::int32_t pid = 0;
  std::uint64_t start = 0;

  static ProcessId Mine();
  bool operator==(const ProcessId&) const = default;
};

bool IsAlive(const ProcessId& process);

struct ProcessBytes {
  int pid = 0;
  std::uint64_t bytes = 0;
  bool operator==(const ProcessBytes&) const = default;
};

using ShareHandle = std::array<unsigned char, 64>;  // as long as cudaIpcMemHandle_t and CUipcMemHandle

// Memory that a process lets others open.
struct SharedMemory {
  int pid = 0;
  int device = 0;
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;  // of the shared address within its allocation
  bool operator==(const SharedMemory&) const = default;
};

class SharedMachine {
 public:
  static constexpr int kMostDevices = 64;
  static constexpr int kMostProcesses = 1024;
  static constexpr int kMostHandles = 4096;

  // Maps what the machine of this folder will use: at the start of a process, which may lose its right to the folder,
  // or the folder, later.
  static void MapAtStart(const std::string& run_folder);

  // A folder that cannot be used is one line on stderr, and the process goes on with accounting of its own.
  SharedMachine(const std::string& run_folder, int devices);
  ~SharedMachine();
  SharedMachine(const SharedMachine&) = delete;
  SharedMachine& operator=(const SharedMachine&) = delete;

  class Lock {
   public:
    explicit Lock(SharedMachine& machine) : machine_(machine) { machine_.Enter(); }
    ~Lock() { machine_.Exit(); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    SharedMachine& machine_;
  };

  std::uint64_t UsedByOthers(int device) const;
  void SetMine(int device, std::uint64_t bytes);
  void ForgetDead();

  // The most bytes that all processes had in use at one time.
  std::uint64_t Peak(int device);
  // Those with bytes in use on the device, by pid.
  std::vector<ProcessBytes> Processes(int device);
  // Gives back all that this process has: for a process that ends in order.
  void Leave();

  // False where no handle is free.
  bool Export(const SharedMemory& memory, ShareHandle& handle);
  std::optional<SharedMemory> Find(const ShareHandle& handle);
  bool Remove(const ShareHandle& handle);

  bool shared() const { return shared_; }

 private:
  struct Accounting;
  static void ForgetPlaceAfterFork();
  void Enter();
  void Exit();
  int TakePlace();  // -1 where none is free
  void Release(int place);
  void SetRight();

  Accounting* accounting_ = nullptr;
  int place_ = -1;  // of this process in the accounting; -1: none yet
  int devices_ = 0;
  std::uint32_t charges_ = 0;
  bool shared_ = false;
  bool is_without_place_ = false;  // and that was said
};

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_MODEL_SHARED_MACHINE_H_
