#include "hollow/model/shared_machine.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#include "hollow/model/file_limit.h"

namespace ashlar::hollow {
namespace {

struct StatLine {
  bool read = false;
  char state = 0;
  std::uint64_t start = 0;
};

StatLine ReadStat(int pid) {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  char text[1024];
  const ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  if (size <= 0) return {};
  text[size] = 0;
  // The name, field 2, may hold blanks and brackets: the last bracket ends it. Field 3 is the state, field 22 the
  // start.
  const char* at = std::strrchr(text, ')');
  if (at == nullptr || at[1] == 0) return {};
  StatLine line{.read = true, .state = at[2]};
  at += 2;
  for (int field = 3; field < 22 && at != nullptr; ++field) {
    at = std::strchr(at, ' ');
    if (at != nullptr) ++at;
  }
  if (at != nullptr) line.start = std::strtoull(at, nullptr, 10);
  return line;
}

}  // namespace

ProcessId ProcessId::Mine() {
  const int pid = getpid();
  return {pid, ReadStat(pid).start};
}

bool IsAlive(const ProcessId& process) {
  if (process.pid <= 0) return false;
  if (kill(process.pid, 0) != 0 && errno == ESRCH) return false;
  const StatLine line = ReadStat(process.pid);
  if (!line.read) return true;  // no /proc: the signal's word is all there is
  if (line.state == 'Z' || line.state == 'X') return false;
  return process.start == 0 || line.start == process.start;
}

// In shared memory: zeros are valid, and nothing in it is an address. From `format` on to the last place it is a file
// format: the launcher reads it when the run is over (launcher/shared_accounting.cc).
struct SharedMachine::Accounting {
  struct Place {
    ProcessId process;  // pid 0: free
    std::uint64_t bytes[kMostDevices];
  };
  struct Handle {
    ShareHandle handle;
    ProcessId owner;  // pid 0: free
    SharedMemory memory;
  };
  std::uint32_t made;  // 1 once the mutex is
  pthread_mutex_t mutex;
  int places;   // those from here on were never taken
  int handles;  // likewise
  alignas(64) char format[16];
  std::uint64_t used[kMostDevices];
  std::uint64_t peak[kMostDevices];
  Place place[kMostProcesses];
  Handle handle[kMostHandles];
};

namespace {

constexpr char kFormat[16] = "ashlar-books 1\n";

std::mutex g_machines_mutex;
std::vector<SharedMachine*>& Machines() {
  static auto* machines = new std::vector<SharedMachine*>;  // outlives every thread
  return *machines;
}

void MakeMutex(pthread_mutex_t* mutex) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

void* MapFile(const std::string& path, std::size_t bytes) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return MAP_FAILED;
  void* at = MAP_FAILED;
  // The lock on the file keeps two processes from both finding it new.
  if (flock(file, LOCK_EX) == 0 && ftruncate(file, static_cast<off_t>(bytes)) == 0) {
    at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at != MAP_FAILED && *static_cast<std::uint32_t*>(at) == 0) {
      // Set last: one that dies half way leaves it unset.
      struct Head {
        std::uint32_t made;
        pthread_mutex_t mutex;
      };
      MakeMutex(&static_cast<Head*>(at)->mutex);
      __atomic_store_n(static_cast<std::uint32_t*>(at), 1U, __ATOMIC_RELEASE);
    }
  }
  const int error = errno;
  flock(file, LOCK_UN);  // the mapping keeps the file open, and with it the lock
  close(file);
  errno = error;
  return at;
}

// Of the run that the process was started in.
struct MappedAtStart {
  std::string folder;
  void* at = MAP_FAILED;
};

MappedAtStart& TheMapped() {
  static auto* mapped = new MappedAtStart;
  return *mapped;
}

void* MappedOrMap(const std::string& run_folder, std::size_t bytes) {
  if (TheMapped().folder == run_folder && TheMapped().at != MAP_FAILED)
    return std::exchange(TheMapped().at, MAP_FAILED);
  return MapFile(run_folder + "/books", bytes);
}

}  // namespace

void SharedMachine::MapAtStart(const std::string& run_folder) {
  const QuietFileLimit quiet;
  TheMapped() = {run_folder, MapFile(run_folder + "/books", sizeof(Accounting))};
}

SharedMachine::SharedMachine(const std::string& run_folder, int devices)
    : devices_(std::clamp(devices, 0, kMostDevices)) {
  const QuietFileLimit quiet;
  void* at = MAP_FAILED;
  if (!run_folder.empty()) {
    at = MappedOrMap(run_folder, sizeof(Accounting));
    shared_ = at != MAP_FAILED;
    if (!shared_) {
      std::fprintf(stderr, "ashlar: %s/books cannot be opened (%s): this process counts device memory alone\n",
                   run_folder.c_str(), std::strerror(errno));
    }
  }
  if (!shared_) {
    at = mmap(nullptr, sizeof(Accounting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    MakeMutex(&static_cast<Accounting*>(at)->mutex);
  }
  accounting_ = static_cast<Accounting*>(at);
  static_assert(offsetof(Accounting, format) == 64 && sizeof(Accounting::Place) == 16 + 8 * kMostDevices);
  std::memcpy(accounting_->format, kFormat, sizeof(kFormat));

  const std::lock_guard lock(g_machines_mutex);
  static const int kHooked = pthread_atfork(nullptr, nullptr, &SharedMachine::ForgetPlaceAfterFork);
  static_cast<void>(kHooked);
  Machines().push_back(this);
}

SharedMachine::~SharedMachine() {
  Leave();
  const std::lock_guard lock(g_machines_mutex);
  std::erase(Machines(), this);
  munmap(accounting_, sizeof(Accounting));
}

// In the child, which has one thread and may not wait for locks that threads of the parent hold.
void SharedMachine::ForgetPlaceAfterFork() {
  for (SharedMachine* machine : Machines()) machine->place_ = -1;
}

void SharedMachine::Enter() {
  if (pthread_mutex_lock(&accounting_->mutex) != EOWNERDEAD) return;
  pthread_mutex_consistent(&accounting_->mutex);
  SetRight();
}

void SharedMachine::Exit() { pthread_mutex_unlock(&accounting_->mutex); }

// Sums anew what a process left half written.
void SharedMachine::SetRight() {
  std::fill_n(accounting_->used, kMostDevices, 0);
  for (int place = 0; place < accounting_->places; ++place) {
    if (accounting_->place[place].process.pid == 0) continue;
    for (int device = 0; device < devices_; ++device)
      accounting_->used[device] += accounting_->place[place].bytes[device];
  }
}

std::uint64_t SharedMachine::UsedByOthers(int device) const {
  return accounting_->used[device] - (place_ < 0 ? 0 : accounting_->place[place_].bytes[device]);
}

void SharedMachine::SetMine(int device, std::uint64_t bytes) {
  if (++charges_ % 4096 == 0) ForgetDead();
  if (place_ < 0) {
    if (bytes == 0) return;
    place_ = TakePlace();
    if (place_ < 0) return;
  }
  std::uint64_t& mine = accounting_->place[place_].bytes[device];
  accounting_->used[device] += bytes - mine;
  mine = bytes;
  accounting_->peak[device] = std::max(accounting_->peak[device], accounting_->used[device]);
}

int SharedMachine::TakePlace() {
  const auto find = [this] {
    int place = 0;
    while (place < kMostProcesses && accounting_->place[place].process.pid != 0) ++place;
    return place;
  };
  int place = find();
  if (place == kMostProcesses) {
    ForgetDead();
    place = find();
  }
  if (place == kMostProcesses) {
    if (!std::exchange(is_without_place_, true)) {
      std::fprintf(stderr,
                   "ashlar: more than %d processes use the devices of one run: what process %d has is not counted\n",
                   kMostProcesses, getpid());
    }
    return -1;
  }
  std::fill_n(accounting_->place[place].bytes, kMostDevices, 0);
  accounting_->place[place].process = ProcessId::Mine();
  accounting_->places = std::max(accounting_->places, place + 1);
  return place;
}

void SharedMachine::Release(int place) {
  Accounting::Place& gone = accounting_->place[place];
  for (int handle = 0; handle < accounting_->handles; ++handle) {
    if (accounting_->handle[handle].owner == gone.process) accounting_->handle[handle].owner = {};
  }
  for (int device = 0; device < devices_; ++device) accounting_->used[device] -= gone.bytes[device];
  std::fill_n(gone.bytes, kMostDevices, 0);
  gone.process = {};
}

void SharedMachine::ForgetDead() {
  for (int place = 0; place < accounting_->places; ++place) {
    const ProcessId process = accounting_->place[place].process;
    if (place != place_ && process.pid != 0 && !IsAlive(process)) Release(place);
  }
}

void SharedMachine::Leave() {
  const Lock lock(*this);
  if (place_ >= 0) Release(place_);
  place_ = -1;
}

std::uint64_t SharedMachine::Peak(int device) {
  const Lock lock(*this);
  return accounting_->peak[device];
}

std::vector<ProcessBytes> SharedMachine::Processes(int device) {
  const Lock lock(*this);
  ForgetDead();
  std::vector<ProcessBytes> uses;
  for (int place = 0; place < accounting_->places; ++place) {
    const Accounting::Place& one = accounting_->place[place];
    if (one.process.pid != 0 && one.bytes[device] != 0) uses.push_back({one.process.pid, one.bytes[device]});
  }
  std::sort(uses.begin(), uses.end(), [](const ProcessBytes& a, const ProcessBytes& b) { return a.pid < b.pid; });
  return uses;
}

bool SharedMachine::Export(const SharedMemory& memory, ShareHandle& handle) {
  if (getrandom(handle.data(), handle.size(), 0) != static_cast<ssize_t>(handle.size())) return false;
  const Lock lock(*this);
  if (place_ < 0) place_ = TakePlace();
  if (place_ < 0) return false;
  int free = 0;
  while (free < kMostHandles && accounting_->handle[free].owner.pid != 0) ++free;
  if (free == kMostHandles) return false;
  accounting_->handle[free] = {handle, accounting_->place[place_].process, memory};
  accounting_->handles = std::max(accounting_->handles, free + 1);
  return true;
}

std::optional<SharedMemory> SharedMachine::Find(const ShareHandle& handle) {
  const Lock lock(*this);
  for (int at = 0; at < accounting_->handles; ++at) {
    if (accounting_->handle[at].owner.pid != 0 && accounting_->handle[at].handle == handle)
      return accounting_->handle[at].memory;
  }
  return std::nullopt;
}

bool SharedMachine::Remove(const ShareHandle& handle) {
  const Lock lock(*this);
  for (int at = 0; at < accounting_->handles; ++at) {
    if (accounting_->handle[at].owner.pid == 0 || accounting_->handle[at].handle != handle) continue;
    accounting_->handle[at].owner = {};
    return true;
  }
  return false;
}

}  // namespace ashlar::hollow
