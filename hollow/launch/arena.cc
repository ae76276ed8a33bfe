#include "hollow/launch/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ashlar::hollow {
namespace {

// Linux on x86-64 gives programs 2^47 bytes of addresses. Below and above this window lie programs and libraries.
constexpr std::uint64_t kBase = 0x110000000000;
constexpr std::uint64_t kWindow = std::uint64_t{63} << 40;
constexpr std::uint64_t kMostOfDevice = std::uint64_t{32} << 40;
constexpr std::uint64_t kPage = 4096;

void* Reserve(std::uint64_t address, std::uint64_t bytes) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (address != 0 ? MAP_FIXED_NOREPLACE : 0);
  return mmap(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
}

}  // namespace

Arena ReserveArena(int devices) {
  constexpr std::uint64_t kStep = std::uint64_t{1} << 40;
  std::uint64_t device_bytes = std::min(kMostOfDevice, kWindow / static_cast<std::uint64_t>(devices) / kStep * kStep);
  device_bytes = std::max(device_bytes, kStep / 2);
  const std::uint64_t bytes = device_bytes * static_cast<std::uint64_t>(devices);
  void* base = Reserve(kBase, bytes);
  if (base == MAP_FAILED) base = Reserve(0, bytes);
  if (base == MAP_FAILED) {
    std::fprintf(stderr,
                 "ashlar: the system gives no %llu TiB of addresses for %d devices: %s; lift `ulimit -v`, and set "
                 "vm.overcommit_memory to 0 or 1\n",
                 static_cast<unsigned long long>(bytes >> 40), devices, std::strerror(errno));
    std::_Exit(3);
  }
  madvise(base, bytes, MADV_DONTDUMP);
  return {reinterpret_cast<std::uint64_t>(base), device_bytes, devices};
}

void DropPages(std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t begin = (address + kPage - 1) / kPage * kPage;
  const std::uint64_t end = (address + bytes) / kPage * kPage;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace ashlar::hollow
