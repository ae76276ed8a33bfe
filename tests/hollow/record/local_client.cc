// A program that opens the driver for itself alone, as PyTorch's runtime and numba do: no function of CUDA is among
// those that the linker finds by name. local_client LIBCUDA; 0: it allocated and freed.
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "ashlar/units.h"

namespace {

void* g_driver = nullptr;

template <typename... Arguments>
void Call(const char* name, Arguments... arguments) {
  auto* function = reinterpret_cast<int (*)(Arguments...)>(dlsym(g_driver, name));
  if (function != nullptr && function(arguments...) == 0) return;
  std::fprintf(stderr, "local_client: %s\n", name);
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  g_driver = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (g_driver == nullptr) return 64;
  int device = 0;
  void* context = nullptr;
  std::uint64_t address = 0;
  Call("cuInit", 0u);
  Call("cuDeviceGet", &device, 0);
  Call("cuDevicePrimaryCtxRetain", &context, device);
  Call("cuCtxPushCurrent_v2", context);
  Call("cuMemAlloc_v2", &address, std::size_t{3} * ashlar::kMiB);
  Call("cuMemFree_v2", address);
  Call("cuMemAlloc_v2", &address, std::size_t{5} * ashlar::kMiB);
  std::fflush(stdout);
  std::_Exit(0);  // what is left is not the fake driver's to complain of
}
