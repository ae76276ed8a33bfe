#include "hollow/launch/made_up.h"

#include <dlfcn.h>
#include <execinfo.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "hollow/launch/process.h"

namespace ashlar::hollow {
namespace {

std::atomic<ashlar_hollow_line> g_line = nullptr;

// Libraries between the program and us: their lines say nothing about the program.
constexpr std::string_view kBetween[] = {"libashlar_hollow", "libcud", "libcu",   "libtorch", "libc10",
                                         "libnccl",          "libnv",  "libc.so", "libc++",   "libstdc++"};

bool IsBetween(std::string_view path) {
  const std::string_view file = path.substr(path.rfind('/') + 1);
  for (const std::string_view start : kBetween) {
    if (file.starts_with(start)) return true;
  }
  return false;
}

std::string NativeLine() {
  std::array<void*, 64> frames = {};
  const int count = backtrace(frames.data(), static_cast<int>(frames.size()));
  for (int i = 0; i < count; ++i) {
    Dl_info info = {};
    if (dladdr(frames[i], &info) == 0 || info.dli_fname == nullptr || IsBetween(info.dli_fname)) continue;
    const std::string_view path = info.dli_fname;
    std::string out(path.substr(path.rfind('/') + 1));
    if (info.dli_sname != nullptr) return out + " " + info.dli_sname;
    std::array<char, 32> offset = {};
    std::snprintf(offset.data(), offset.size(), "+0x%zx",
                  static_cast<std::size_t>(static_cast<char*>(frames[i]) - static_cast<char*>(info.dli_fbase)));
    return out + offset.data();
  }
  return "(unknown line)";
}

std::string LineOfProgram() {
  const ashlar_hollow_line line = g_line.load();
  std::array<char, 512> text = {};
  if (line != nullptr && line(text.data(), text.size())) return text.data();
  return NativeLine();
}

// Marsaglia's xorshift64*.
std::uint64_t NextRandom(std::uint64_t& state) {
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * 0x2545F4914F6CDD1D;
}

void WriteRandom(unsigned char* host, std::uint64_t bytes, std::uint64_t seed) {
  static std::atomic<std::uint64_t> reads = 0;
  std::uint64_t state = (seed + 1) * 0x9E3779B97F4A7C15 + reads.fetch_add(1);
  for (std::uint64_t i = 0; i < bytes; ++i) host[i] = static_cast<unsigned char>(NextRandom(state) >> 56);
}

}  // namespace

void SetLineTeller(ashlar_hollow_line line) { g_line.store(line); }

void WriteMadeUp(void* host, std::uint64_t bytes) {
  const Settings& settings = TheSettings();
  if (settings.values == Values::kRandom) {
    WriteRandom(static_cast<unsigned char*>(host), bytes, settings.random_seed);
  } else {
    std::memset(host, settings.values == Values::kOnes ? 1 : 0, bytes);
  }
}

void CountMadeUp(std::uint64_t bytes) { TheProcess().tally.AddMadeUp(LineOfProgram(), bytes); }

}  // namespace ashlar::hollow
