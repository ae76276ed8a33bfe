#include "hollow/surfaces/occupancy.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "hollow/surfaces/device_code.h"

namespace ashlar::hollow {
namespace {

constexpr int kDefaultDynamicShared = 49'152;
constexpr int kRegisters = 32;

struct Kernels {
  std::mutex mutex;
  std::map<const void*, int> dynamic_shared;
  std::set<std::string> names;
};

Kernels& AllKernels() {
  static Kernels* kernels = new Kernels;  // programs ask until their very end
  return *kernels;
}

}  // namespace

abi::FuncAttributes FunctionAttributes(const Settings& settings, const void* function) {
  Kernels& kernels = AllKernels();
  const std::lock_guard<std::mutex> lock(kernels.mutex);
  const auto it = kernels.dynamic_shared.find(function);
  abi::FuncAttributes out = {};
  out.max_threads = 1024;
  out.registers = kRegisters;
  out.ptx_version = CompiledArchitecture(function, settings.compute_major * 10 + settings.compute_minor);
  out.binary_version = out.ptx_version;
  out.max_dynamic_shared_bytes = it == kernels.dynamic_shared.end() ? kDefaultDynamicShared : it->second;
  out.carveout = -1;
  return out;
}

void SetMaxDynamicShared(const void* function, int bytes) {
  Kernels& kernels = AllKernels();
  const std::lock_guard<std::mutex> lock(kernels.mutex);
  kernels.dynamic_shared[function] = bytes;
}

int BlocksPerMultiprocessor(const Settings& settings, int threads, std::uint64_t shared_bytes) {
  const int by_threads = settings.threads_per_sm / std::max(threads, 1);
  const int most = settings.threads_per_sm >= 2048 ? 32 : 16;
  int blocks = std::min(by_threads, most);
  if (shared_bytes > 0) blocks = std::min(blocks, static_cast<int>(settings.shared_per_sm / shared_bytes));
  return std::max(blocks, 1);
}

void* NamedKernel(const std::string& name) {
  Kernels& kernels = AllKernels();
  const std::lock_guard<std::mutex> lock(kernels.mutex);
  return const_cast<std::string*>(&*kernels.names.insert(name).first);
}

const char* NameOfKernel(const void* kernel) {
  Kernels& kernels = AllKernels();
  const std::lock_guard<std::mutex> lock(kernels.mutex);
  for (const std::string& name : kernels.names) {
    if (&name == kernel) return name.c_str();
  }
  return nullptr;
}

}  // namespace ashlar::hollow
