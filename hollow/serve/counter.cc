#include "hollow/serve/counter.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "hollow/serve/homes.h"

namespace ashlar::serve {
namespace {

constexpr std::size_t kFileBytes = sizeof(kServedMagic) + sizeof(ServedCounts);

constexpr int kMostFiles = 1000;

std::atomic<ServedCounts*> g_counts = nullptr;
std::atomic<bool> g_is_off = false;

// A process that became another by exec has one for each.
int MakeFile(const std::string& path) {
  int file = -1;
  for (int number = 0; number < kMostFiles && file < 0; ++number) {
    const std::string name = number == 0 ? path : path + "-" + std::to_string(number);
    file = open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0 && errno != EEXIST) return file;
  }
  return file;
}

ServedCounts* Map() {
  const char* folder = std::getenv("ASHLAR_SERVED");
  if (folder == nullptr || *folder == '\0') return nullptr;
  const int file = MakeFile(std::string(folder) + "/served-" + std::to_string(getpid()));
  if (file < 0) return nullptr;
  void* at = MAP_FAILED;
  if (posix_fallocate(file, 0, kFileBytes) == 0) {
    at = mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  close(file);
  if (at == MAP_FAILED) return nullptr;
  std::memcpy(at, kServedMagic, sizeof(kServedMagic));
  return reinterpret_cast<ServedCounts*>(static_cast<char*>(at) + sizeof(kServedMagic));
}

ServedCounts* Counts() {
  ServedCounts* known = g_counts.load(std::memory_order_acquire);
  if (known != nullptr || g_is_off.load(std::memory_order_relaxed)) return known;
  ServedCounts* made = Map();
  if (made == nullptr) {
    g_is_off = true;
    return nullptr;
  }
  // Where another thread was first, this one's file stays, with zeros in it.
  return g_counts.compare_exchange_strong(known, made, std::memory_order_acq_rel) ? made : known;
}

void Refresh(ServedCounts& counts) {
  ServedCounts sum;
  for (int device = 0; device < kMostDevices; ++device) {
    const Home* home = HomeInModel(device);
    ashlar_statistics now = {};
    now.struct_size = sizeof(now);
    if (home == nullptr || TheAshlar()->get_statistics(home->allocator, &now) != ASHLAR_OK) continue;
    sum.device_allocations += now.device_allocations;
    sum.device_frees += now.device_frees;
    sum.allocated_bytes += now.allocated_bytes;
    sum.peak_allocated_bytes += now.peak_allocated_bytes;
    sum.peak_reserved_bytes += now.peak_reserved_bytes;
  }
  counts.device_allocations = sum.device_allocations;
  counts.device_frees = sum.device_frees;
  counts.allocated_bytes = sum.allocated_bytes;
  counts.peak_allocated_bytes = sum.peak_allocated_bytes;
  counts.peak_reserved_bytes = sum.peak_reserved_bytes;
}

__attribute__((destructor)) void TellEnd() {
  ServedCounts* counts = g_counts.load(std::memory_order_acquire);
  if (counts == nullptr) return;
  Refresh(*counts);
  counts->has_ended = 1;
}

}  // namespace

void Count(std::uint64_t ServedCounts::*what) {
  ServedCounts* counts = Counts();
  if (counts == nullptr) return;
  const std::uint64_t before = std::atomic_ref(counts->*what).fetch_add(1, std::memory_order_relaxed);
  if (before % kRefreshEvery == 0) Refresh(*counts);
}

void CountAnew() {
  g_counts = nullptr;  // the mapping stays: the parent's values are not this process's to change
  g_is_off = false;
}

}  // namespace ashlar::serve
