#include "hollow/surfaces/device_code.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <utility>

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

std::vector<CompiledCode> CodeIn(const void* wrapper) {
  std::vector<CompiledCode> out;
  const Wrapper outer = ReadAt<Wrapper>(static_cast<const char*>(wrapper));
  if (outer.magic != kWrapperMagic || outer.data == nullptr) return out;
  const ContainerHeader header = ReadAt<ContainerHeader>(outer.data);
  if (header.magic != kContainerMagic) return out;
  const char* at = outer.data + header.header_bytes;
  const char* const end = at + header.bytes;
  while (end - at >= static_cast<std::ptrdiff_t>(sizeof(EntryHeader))) {
    const EntryHeader entry = ReadAt<EntryHeader>(at);
    const std::uint64_t whole = entry.header_bytes + entry.bytes;
    if (entry.header_bytes < sizeof(entry) || whole > static_cast<std::uint64_t>(end - at)) break;
    if (entry.kind == kPtx || entry.kind == kBinary) {
      out.push_back({static_cast<int>(entry.architecture), entry.kind == kPtx});
    }
    at += whole;
  }
  return out;
}

int ChooseArchitecture(const std::vector<CompiledCode>& code, int device) {
  const CompiledCode* best = nullptr;
  for (const CompiledCode& one : code) {
    if (best == nullptr || IsBetter(one, *best, device)) best = &one;
  }
  return best == nullptr ? device : best->architecture;
}

void RegisterDeviceCode(const void* handle, const void* wrapper) {
  Registered& all = AllRegistered();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.wrappers[handle] = wrapper;
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

}  // namespace ashlar::hollow
