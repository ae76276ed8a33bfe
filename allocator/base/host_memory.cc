#include "allocator/base/host_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "allocator/base/units.h"

namespace ashlar {
namespace {

// The number that a file of Linux holds; nullopt: none, or "max".
std::optional<std::uint64_t> NumberIn(const char* path) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

std::uint64_t FreeOfGroup() {
  const std::optional<std::uint64_t> most = NumberIn("/sys/fs/cgroup/memory.max");
  const std::optional<std::uint64_t> taken = NumberIn("/sys/fs/cgroup/memory.current");
  if (!most.has_value() || !taken.has_value()) return std::numeric_limits<std::uint64_t>::max();
  return *most - std::min(*most, *taken);
}

}  // namespace

std::optional<std::uint64_t> AvailableHostBytes() {
  std::ifstream info("/proc/meminfo");
  for (std::string key, rest; info >> key; std::getline(info, rest)) {
    std::uint64_t kib = 0;
    if (key == "MemAvailable:" && info >> kib) return std::min(kib * kKiB, FreeOfGroup());
  }
  return std::nullopt;
}

}  // namespace ashlar
