#include "hollow/api/cuda/device_code.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ashlar::hollow {
namespace {

struct Wrapper {
  std::uint32_t magic, version;
  const char* data;
};
struct ContainerHeader {
  std::uint32_t magic;
  std::uint16_t version, header_bytes;
  std::uint64_t bytes;  // of the entries
};
struct EntryHeader {
  std::uint16_t kind, version;
  std::uint32_t header_bytes;
  std::uint64_t bytes;
  std::uint32_t compressed_bytes, options;
  std::uint16_t minor, major;
  std::uint32_t architecture;
};
static_assert(sizeof(ContainerHeader) == 16 && sizeof(EntryHeader) == 32);
constexpr std::uint32_t kWrapperMagic = 0x466243B1, kContainerMagic = 0xBA55ED50;
constexpr std::uint16_t kPtx = 1, kBinary = 2;
constexpr std::uint32_t kCompressed = 0x2000 | 0x8000;  // LZ4, Zstandard

struct Registered {
  std::mutex mutex;
  std::unordered_map<const void*, const void*> wrappers;  // by handle
  std::vector<std::pair<const void*, const void*>> told;  // kernel and handle, of programs that are starting
  std::unordered_map<const void*, const void*> handles;   // by kernel: those of `told` once somebody asks
};

Registered& AllRegistered() {
  static Registered* all = new Registered;  // programs ask until their very end
  return *all;
}

template <typename T>
T ReadAt(const char* from) {
  T out;
  std::memcpy(&out, from, sizeof(out));
  return out;
}

bool IsBetter(const CompiledCode& code, const CompiledCode& than, int device) {
  const auto rank = [device](const CompiledCode& of) {
    if (of.architecture > device) return 0;
    if (of.is_ptx) return 1;
    return of.architecture / 10 == device / 10 ? 2 : 0;
  };
  if (rank(code) != rank(than)) return rank(code) > rank(than);
  if (rank(code) == 0) return std::abs(code.architecture - device) < std::abs(than.architecture - device);
  return code.architecture > than.architecture;
}

}  // namespace

std::vector<CompiledCode> CodeIn(const void* code) {
  std::vector<CompiledCode> out;
  const auto* container = static_cast<const char*>(code);
  if (ReadAt<std::uint32_t>(container) == kWrapperMagic) container = ReadAt<Wrapper>(container).data;
  if (container == nullptr || ReadAt<std::uint32_t>(container) != kContainerMagic) return out;
  const ContainerHeader header = ReadAt<ContainerHeader>(container);
  const char* at = container + header.header_bytes;
  const char* const end = at + header.bytes;
  while (end - at >= static_cast<std::ptrdiff_t>(sizeof(EntryHeader))) {
    const EntryHeader entry = ReadAt<EntryHeader>(at);
    const std::uint64_t whole = entry.header_bytes + entry.bytes;
    if (entry.header_bytes < sizeof(entry) || whole > static_cast<std::uint64_t>(end - at)) break;
    if (entry.kind == kPtx || entry.kind == kBinary) {
      out.push_back({static_cast<int>(entry.architecture), entry.kind == kPtx, (entry.options & kCompressed) != 0,
                     at + entry.header_bytes, entry.bytes});
    }
    at += whole;
  }
  return out;
}

const CompiledCode* ChooseCode(const std::vector<CompiledCode>& code, int device) {
  const CompiledCode* best = nullptr;
  for (const CompiledCode& one : code) {
    if (best == nullptr || IsBetter(one, *best, device)) best = &one;
  }
  return best;
}

int ChooseArchitecture(const std::vector<CompiledCode>& code, int device) {
  const CompiledCode* best = ChooseCode(code, device);
  return best == nullptr ? device : best->architecture;
}

void RegisterDeviceCode(const void* handle, const void* wrapper) {
  Registered& all = AllRegistered();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.wrappers[handle] = wrapper;
}

const void* RegisteredCode(const void* handle) {
  Registered& all = AllRegistered();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto it = all.wrappers.find(handle);
  return it == all.wrappers.end() ? nullptr : it->second;
}

void ForgetDeviceCode(const void* handle) {
  Registered& all = AllRegistered();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.wrappers.erase(handle);
}

void RegisterKernel(const void* handle, const void* kernel) {
  Registered& all = AllRegistered();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.told.emplace_back(kernel, handle);
}

int CompiledArchitecture(const void* kernel, int device) {
  Registered& all = AllRegistered();
  const std::lock_guard<std::mutex> lock(all.mutex);
  for (const auto& [stub, handle] : all.told) all.handles[stub] = handle;
  all.told.clear();
  const auto handle = all.handles.find(kernel);
  if (handle == all.handles.end()) return device;
  const auto wrapper = all.wrappers.find(handle->second);
  return wrapper == all.wrappers.end() ? device : ChooseArchitecture(CodeIn(wrapper->second), device);
}

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
