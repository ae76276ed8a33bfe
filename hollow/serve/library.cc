#include "hollow/serve/library.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

namespace ashlar::serve {
namespace {

const std::string& FileName() {
  static const std::string& name = *new std::string("libashlar.so." + std::to_string(ASHLAR_ABI_VERSION));
  return name;
}

// One that the process has already, else the one that was built or installed with this library (its run path says
// where).
void* Open() { return dlopen(FileName().c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); }

template <typename Function>
bool Take(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

bool TakeAll(void* library, Ashlar& out) {
  return Take(library, "ashlar_last_error", out.last_error) &&
         Take(library, "ashlar_process_allocator", out.process_allocator) && Take(library, "ashlar_conf", out.conf) &&
         Take(library, "ashlar_allocate", out.allocate) && Take(library, "ashlar_free", out.free) &&
         Take(library, "ashlar_record_stream", out.record_stream) &&
         Take(library, "ashlar_find_block", out.find_block) && Take(library, "ashlar_holds", out.holds) &&
         Take(library, "ashlar_get_statistics", out.get_statistics);
}

// Where its code lies.
std::atomic<std::uintptr_t> g_begin = 0, g_end = 0;

int TakeBounds(dl_phdr_info* info, std::size_t, void* function) {
  const auto address = reinterpret_cast<std::uintptr_t>(function);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr;
    if (part.p_type != PT_LOAD || address < begin || address >= begin + part.p_memsz) continue;
    g_begin = begin;
    g_end = begin + part.p_memsz;
    return 1;
  }
  return 0;
}

// No lock is held while a library is loaded: one that allocates while it is loaded itself holds the linker's.
std::atomic<const Ashlar*> g_ashlar = nullptr;
std::atomic<bool> g_is_missing = false;

}  // namespace

const Ashlar* TheAshlar() {
  const Ashlar* known = g_ashlar.load(std::memory_order_acquire);
  if (known != nullptr || g_is_missing.load(std::memory_order_relaxed)) return known;
  void* library = Open();
  const char* why_not = library == nullptr ? dlerror() : nullptr;
  auto* found = new Ashlar;
  if (library == nullptr || !TakeAll(library, *found)) {
    delete found;
    if (g_is_missing.exchange(true)) return nullptr;
    Say("nothing is served: %s: install it beside libashlar_serve.so",
        why_not != nullptr ? why_not : (FileName() + " is of another version").c_str());
    return nullptr;
  }
  dl_iterate_phdr(TakeBounds, reinterpret_cast<void*>(found->allocate));
  if (g_ashlar.compare_exchange_strong(known, found, std::memory_order_acq_rel)) return found;
  delete found;  // another thread was first
  return known;
}

bool IsOfAshlar(const void* address) {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  return number >= g_begin.load(std::memory_order_relaxed) && number < g_end.load(std::memory_order_relaxed);
}

void Say(const char* format, ...) {
  char text[1024];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "ashlar: %s\n", text);
}

}  // namespace ashlar::serve
