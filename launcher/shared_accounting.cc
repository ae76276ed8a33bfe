#include "launcher/shared_accounting.h"

#include <signal.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "launcher/shared_accounting.h"

namespace ashlar::cli {
namespace {

constexpr std::size_t kHeadBytes = 64;  // how the processes lock it
constexpr char kFormat[16] = "ashlar-books 1\n";
constexpr std::size_t kDevices = 64;
constexpr std::size_t kPlaces = 1024;

struct ProcessPlace {
  std::int32_t pid;  // 0: free
  std::uint64_t start;
  std::uint64_t bytes[kDevices];
};

struct Facts {
  char format[sizeof(kFormat)];
  std::uint64_t used[kDevices];
  std::uint64_t peak[kDevices];
  ProcessPlace place[kPlaces];
};

// A process that ended and was not waited for is dead: its memory is gone.
bool IsDead(std::int32_t pid) {
  if (kill(pid, 0) != 0 && errno == ESRCH) return true;
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::size_t name_end = text.rfind(')');  // a name may hold anything
  if (name_end == std::string::npos || name_end + 2 >= text.size()) return false;
  return text[name_end + 2] == 'Z' || text[name_end + 2] == 'X';
}

std::map<int, std::uint64_t> InUse(const std::uint64_t (&bytes)[kDevices]) {
  std::map<int, std::uint64_t> out;
  for (std::size_t i = 0; i < kDevices; ++i) {
    if (bytes[i] > 0) out[static_cast<int>(i)] = bytes[i];
  }
  return out;
}

}  // namespace

std::optional<SharedAccounting> ReadSharedAccounting(const std::string& folder) {
  const std::string books = folder + "/books";
  if (!IsLeftFile(books)) return std::nullopt;
  std::ifstream in(books, std::ios::binary);
  const auto facts = std::make_unique<Facts>();
  in.seekg(kHeadBytes);
  in.read(reinterpret_cast<char*>(facts.get()), sizeof(Facts));
  if (!in || std::memcmp(facts->format, kFormat, sizeof(kFormat)) != 0) return std::nullopt;
  SharedAccounting out;
  out.peaks = InUse(facts->peak);
  for (const ProcessPlace& place : facts->place) {
    if (place.pid == 0 || !IsDead(place.pid)) continue;
    if (std::map<int, std::uint64_t> held = InUse(place.bytes); !held.empty()) out.left_held[place.pid] = held;
  }
  return out;
}

}  // namespace ashlar::cli
