#include "hollow/api/surface.h"

#include <dlfcn.h>
#include <execinfo.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "ashlar/hollow.h"
#include "hollow/abi/library_lines.h"
#include "hollow/api/cublas/cublas.h"
#include "hollow/api/cuda/stream_work.h"
#include "hollow/api/cuda/streams.h"
#include "hollow/api/driver/call.h"
#include "hollow/process/process.h"

namespace ashlar::hollow {
namespace {

std::atomic<ashlar_hollow_line> g_line = nullptr;

// What reads of this thread are told in the place of the device's bytes (ashlar_hollow_read_as).
thread_local std::optional<std::uint64_t> t_given;

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

// Little-endian, as the device and the host are.
void WriteNumber(void* host, std::uint64_t bytes, std::uint64_t number) {
  if (bytes == 1) number = 1;
  std::memset(host, 0, bytes);
  std::memcpy(host, &number, std::min<std::uint64_t>(bytes, sizeof(number)));
}

}  // namespace

bool ReadsAreGiven() { return t_given.has_value(); }

void SetLineTeller(ashlar_hollow_line line) { g_line.store(line); }

void WriteMadeUp(void* host, std::uint64_t bytes) {
  if (t_given.has_value()) return WriteNumber(host, bytes, *t_given);
  const Settings& settings = TheSettings();
  if (settings.values == Values::kRandom) {
    WriteRandom(static_cast<unsigned char*>(host), bytes, settings.random_seed);
  } else {
    std::memset(host, settings.values == Values::kOnes ? 1 : 0, bytes);
  }
}

void CountMadeUp(std::uint64_t bytes) {
  if (ReadsAreGiven()) return;
  if (const std::string line = LineOfProgram(); !line.empty()) TheProcess().tally.AddMadeUp(line, bytes);
}

bool IsInitialized() { return TheProcess().is_initialized.load(std::memory_order_relaxed); }

void CountRefused(const char* name) { TheProcess().tally.AddRefused(name); }

void CountLaunch(void* stream) { (void)static_cast<int>(GiveKernel(stream)); }

void ReadMadeUp(void* host, std::uint64_t bytes) {
  WriteMadeUp(host, bytes);
  CountMadeUp(bytes);
}

}  // namespace ashlar::hollow

// The functions of ashlar/hollow.h.

using ashlar::hollow::Process;
using ashlar::hollow::TheProcess;

bool ashlar_hollow_begin_run(void) { return ashlar::hollow::BeginRun(); }

bool ashlar_hollow_set_capacity(int ordinal, uint64_t bytes) {
  Process& process = TheProcess();
  if (ordinal < 0 || ordinal >= process.settings.devices) return false;
  const std::lock_guard<std::mutex> lock(process.mutex);
  process.devices[ordinal]->SetTotal(bytes);
  return true;
}

void ashlar_hollow_fail_call(uint64_t n) {
  Process& process = TheProcess();
  const std::lock_guard<std::mutex> lock(process.mutex);
  process.failures.fail_call = n;
}

void ashlar_hollow_fail_request(uint64_t n) {
  Process& process = TheProcess();
  const std::lock_guard<std::mutex> lock(process.mutex);
  process.failures.fail_request = n;
}

uint64_t ashlar_hollow_used(int ordinal) {
  if (ordinal < 0 || ordinal >= TheProcess().settings.devices) return 0;
  return ashlar::hollow::UsedBytes(ordinal);
}

uint64_t ashlar_hollow_real_bytes(void) { return TheProcess().settings.real_bytes; }

void ashlar_hollow_know(uint64_t address, uint64_t bytes) {
  ashlar::hollow::SettleRange(address, bytes);
  ashlar::hollow::Know(address, bytes);
}

void ashlar_hollow_forget(uint64_t address, uint64_t bytes) {
  // Of one tensor: what other ranks are still to write comes before. All that is not in use is forgotten at once,
  // without waiting for anybody: what is written to it later is known then.
  constexpr uint64_t kMostOfTensor = uint64_t{64} << 20;
  if (bytes <= kMostOfTensor) ashlar::hollow::SettleRange(address, bytes);
  ashlar::hollow::Forget(address, bytes);
}

bool ashlar_hollow_is_known(uint64_t address, uint64_t bytes) {
  ashlar::hollow::SettleRange(address, bytes);
  return ashlar::hollow::IsKnown(address, bytes);
}

void ashlar_hollow_read_as(uint64_t number) { ashlar::hollow::t_given = number; }

void ashlar_hollow_read_as_is(void) { ashlar::hollow::t_given.reset(); }

bool ashlar_hollow_is_workspace(uint64_t address, uint64_t bytes) {
  return ashlar::hollow::IsWorkspace(address, bytes);
}

size_t ashlar_hollow_libraries(int ordinal, char* text, size_t size) {
  Process& process = TheProcess();
  ashlar::hollow::LibraryLines lines(text, size);
  const std::lock_guard<std::mutex> lock(process.mutex);
  for (const auto& [file, held] : process.allocations.ByLibrary(ordinal)) lines.Add(held.bytes, held.blocks, file);
  return lines.used();
}

void ashlar_hollow_set_line(ashlar_hollow_line line) { ashlar::hollow::SetLineTeller(line); }
