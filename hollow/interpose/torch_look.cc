#include "hollow/interpose/torch_look.h"

#include <link.h>

#include <cstddef>
#include <cstring>

namespace ashlar::interpose {
namespace {

// One look at what is loaded: stops at once where nothing came since the last one.
struct Look {
  unsigned long long loaded;
  bool is_first = true;
  bool has_torch = false;
};

int LookAtLibrary(dl_phdr_info* info, std::size_t, void* data) {
  auto* look = static_cast<Look*>(data);
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
  Look look{loaded_.load(std::memory_order_relaxed)};
  dl_iterate_phdr(LookAtLibrary, &look);
  if (look.has_torch) has_torch_.store(true, std::memory_order_relaxed);
  loaded_.store(look.loaded, std::memory_order_relaxed);
  return look.has_torch;
}

}  // namespace ashlar::interpose
