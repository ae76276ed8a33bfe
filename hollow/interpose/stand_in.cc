#include "hollow/interpose/stand_in.h"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "hollow/api/real_library.h"

// Their arguments are of no interest here.
#define ASHLAR_NAME(name, driver_name, since, is_per_thread) \
  extern "C" __attribute__((visibility("hidden"))) void ashlar_own_##name();
#include ASHLAR_STAND_INS
#undef ASHLAR_NAME

namespace ashlar::interpose {

thread_local int t_depth = 0;

namespace {

thread_local bool t_is_finding = false;

struct Entry {
  const char* name;
  void (*own)();
  const char* driver_name;
  int since;
  bool is_per_thread;
};

constexpr Entry kEntries[] = {
#define ASHLAR_NAME(name, driver_name, since, is_per_thread) \
  {#name, ashlar_own_##name, driver_name, since, is_per_thread},
#include ASHLAR_STAND_INS
#undef ASHLAR_NAME
};
constexpr std::size_t kCount = sizeof(kEntries) / sizeof(kEntries[0]);

std::array<std::atomic<void*>, kCount> g_real = {};

void* OwnOf(std::size_t index) { return reinterpret_cast<void*>(kEntries[index].own); }

// The file's start in memory tells it from others.
void* LibraryOf(void* function) {
  Dl_info info = {};
  return dladdr(function, &info) == 0 ? nullptr : info.dli_fbase;
}

void* Resolve(std::size_t index) {
  void* real = g_real[index].load(std::memory_order_acquire);
  if (real != nullptr) return real;
  real = FindReal(kEntries[index].name);
  if (real != nullptr) g_real[index].store(real, std::memory_order_release);
  return real;
}

// While it lives, dlsym of this thread gives the real functions: it is us who ask.
class AskingForReal {
 public:
  AskingForReal() : was_finding_(t_is_finding) { t_is_finding = true; }
  ~AskingForReal() { t_is_finding = was_finding_; }
  AskingForReal(const AskingForReal&) = delete;
  AskingForReal& operator=(const AskingForReal&) = delete;

 private:
  const bool was_finding_;
};

void TellMissing(const char* name) {
  static std::atomic<bool> was_told = false;
  if (was_told.exchange(true)) return;
  std::fprintf(stderr, "ashlar: the program calls %s, and no library that it loaded has it\n", name);
}

void* HandOutAt(std::size_t index, void* found) {
  void* real = Resolve(index);
  if (real == nullptr) {
    g_real[index].store(found, std::memory_order_release);
    return OwnOf(index);
  }
  if (real == found) return OwnOf(index);
  const void* library = LibraryOf(found);  // ours, where the real one looked the name up among all
  return library == LibraryOf(OwnOf(index)) || library == LibraryOf(real) ? OwnOf(index) : found;
}

}  // namespace

const char* TextOf(Name name) { return kEntries[static_cast<std::size_t>(name)].name; }

bool IsFinding() { return t_is_finding; }

void* FindReal(const char* symbol) {
  const AskingForReal finding;
  void* next = dlsym(RTLD_NEXT, symbol);
  if (next != nullptr) return next;
  const bool is_runtime = std::strncmp(symbol, "cuda", 4) == 0;
  return hollow::RealFunction(is_runtime ? "libcudart.so." : "libcuda.so.", symbol);
}

void* RealOf(Name name) {
  const auto index = static_cast<std::size_t>(name);
  void* real = g_real[index].load(std::memory_order_acquire);
  if (real == nullptr) [[unlikely]] {
    real = Resolve(index);
    if (real == nullptr) TellMissing(kEntries[index].name);
  }
  return real;
}

bool IsStoodIn(const char* symbol) {
  if (symbol[0] != 'c' || symbol[1] != 'u') return false;
  for (const Entry& entry : kEntries) {
    if (std::strcmp(entry.name, symbol) == 0) return true;
  }
  return false;
}

void* HandOut(const char* symbol, void* found) {
  for (std::size_t i = 0; i < kCount; ++i) {
    if (std::strcmp(kEntries[i].name, symbol) == 0) return HandOutAt(i, found);
  }
  return found;
}

void* HandOutDriver(const char* driver_name, int cuda_version, bool is_per_thread, void* found) {
  std::size_t chosen = kCount;
  for (std::size_t i = 0; i < kCount; ++i) {
    const Entry& entry = kEntries[i];
    if (entry.driver_name == nullptr || std::strcmp(entry.driver_name, driver_name) != 0) continue;
    if (cuda_version < entry.since) return found;
    if (chosen == kCount || entry.is_per_thread == is_per_thread) chosen = i;
  }
  return chosen == kCount ? found : HandOutAt(chosen, found);
}

}  // namespace ashlar::interpose

namespace ashlar::interpose {
namespace {

// One look at what is loaded: stops at once where nothing came since the last one.
struct LoadedLook {
  unsigned long long loaded;
  bool is_first = true;
  bool has_torch = false;
};

int LookAtLibrary(dl_phdr_info* info, std::size_t, void* data) {
  auto* look = static_cast<LoadedLook*>(data);
  if (look->is_first && look->loaded == info->dlpi_adds) return 1;
  look->is_first = false;
  look->loaded = info->dlpi_adds;
  const bool is_torch = info->dlpi_name != nullptr && std::strstr(info->dlpi_name, "libc10_cuda.so") != nullptr;
  look->has_torch = look->has_torch || is_torch;
  return 0;
}

}  // namespace

bool TorchLook::HasTorch() {
  if (has_torch_.load(std::memory_order_relaxed)) return true;
  LoadedLook look{loaded_.load(std::memory_order_relaxed)};
  dl_iterate_phdr(LookAtLibrary, &look);
  if (look.has_torch) has_torch_.store(true, std::memory_order_relaxed);
  loaded_.store(look.loaded, std::memory_order_relaxed);
  return look.has_torch;
}

}  // namespace ashlar::interpose
