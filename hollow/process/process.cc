#include "hollow/process/process.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "hollow/model/file_limit.h"

namespace ashlar::hollow {
namespace {

// Linux gives programs 2^47 bytes of addresses on x86-64, and 2^48 on most of aarch64. Below and above this window lie
// programs and libraries.
constexpr std::uint64_t kBase = 0x110000000000;
constexpr std::uint64_t kWindow = std::uint64_t{63} << 40;
constexpr std::uint64_t kMostOfDevice = std::uint64_t{32} << 40;
// What a device has at the least, for each byte of its memory: an eighth is for segments, which lie apart from each
// other.
constexpr std::uint64_t kLeastPerByte = 16;

void* Reserve(std::uint64_t address, std::uint64_t bytes) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (address != 0 ? MAP_FIXED_NOREPLACE : 0);
  return mmap(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
}

}  // namespace

DeviceAddresses ReserveAddresses(const Settings& settings) {
  constexpr std::uint64_t kStep = std::uint64_t{1} << 40;
  const auto devices = static_cast<std::uint64_t>(settings.devices);
  const std::uint64_t most = std::max(std::min(kMostOfDevice, kWindow / devices / kStep * kStep), kStep / 2);
  for (std::uint64_t of_device = most;; of_device /= 2) {
    const std::uint64_t bytes = of_device * devices;
    void* base = Reserve(kBase, bytes);
    if (base == MAP_FAILED) base = Reserve(0, bytes);
    if (base != MAP_FAILED) {
      madvise(base, bytes, MADV_DONTDUMP);
      return {reinterpret_cast<std::uint64_t>(base), of_device, settings.devices};
    }
    if (of_device / 2 >= kLeastPerByte * settings.total_bytes) continue;
    std::fprintf(stderr,
                 "ashlar: the system gives no %llu GiB of addresses for %d devices: %s; lift `ulimit -v`, and set "
                 "vm.overcommit_memory to 0 or 1\n",
                 static_cast<unsigned long long>(bytes >> 30), settings.devices, std::strerror(errno));
    std::_Exit(3);
  }
}

void DropPages(std::uint64_t address, std::uint64_t bytes) {
  static const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t begin = (address + page - 1) / page * page;
  const std::uint64_t end = (address + bytes) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

namespace {
constexpr char kLost[] = ": the calls that follow are not in it";
}  // namespace

CallLog::CallLog() {
  const char* named = std::getenv("ASHLAR_HOLLOW_CALLS");
  if (named == nullptr || *named == '\0') return;
  std::string path = named;
  for (std::size_t at; (at = path.find("%p")) != std::string::npos;) path.replace(at, 2, std::to_string(getpid()));
  path_ = path;
  file_ = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644);  // a pipe is not waited for
  if (file_ >= 0) {
    fcntl(file_, F_SETFL, fcntl(file_, F_GETFL) & ~O_NONBLOCK);
  } else {
    SayUnwritten(kLost);
  }
}

void CallLog::SayUnwritten(const char* what_then) const {
  const char* const why = errno == ENXIO ? "nobody reads this pipe" : std::strerror(errno);
  std::fprintf(stderr, "ashlar: ASHLAR_HOLLOW_CALLS: %s cannot be written: %s%s\n", path_.c_str(), why, what_then);
}

void CallLog::Add(const char* call, int device, std::uint64_t bytes, std::uint64_t place, Error error) const {
  if (file_ < 0) {
    ++lost_;
    return;
  }
  const QuietFileLimit quiet;
  char line[160];
  const int length = std::snprintf(line, sizeof(line), "%s %d %" PRIu64 " 0x%" PRIx64 " %d\n", call, device, bytes,
                                   place, static_cast<int>(error));
  ssize_t written = 0;
  do {
    written = write(file_, line, static_cast<std::size_t>(length));
  } while (written < 0 && errno == EINTR);
  if (written == length) return;
  if (written >= 0) errno = ENOSPC;  // a part of the line was the last that had room
  if (lost_++ == 0) SayUnwritten(kLost);
}

namespace {

Devices MakeDevices(const Settings& settings, const DeviceAddresses& addresses, SharedMachine& shared,
                    FailurePlan& failures) {
  Devices out;
  for (int i = 0; i < settings.devices; ++i) {
    DeviceSetup setup;
    setup.ordinal = i;
    setup.total_bytes = settings.total_bytes;
    setup.context_bytes = settings.context_bytes;
    setup.in_use_bytes = settings.in_use_bytes;
    setup.base_address = addresses.base_address + static_cast<std::uint64_t>(i) * addresses.device_bytes;
    setup.span_bytes = addresses.device_bytes;
    setup.address_order = settings.addresses;
    out.push_back(std::make_unique<DeviceModel>(setup, shared, failures));
  }
  return out;
}

std::atomic<Process*> g_process = nullptr;

bool HasContext(const Process& process) {
  for (const auto& device : process.devices) {
    if (device->has_context()) return true;
  }
  return false;
}

void BeforeFork() {
  if (HasProcess()) TheProcess().mutex.lock();
}
void InParent() {
  if (HasProcess()) TheProcess().mutex.unlock();
}
void InChild() {
  if (!HasProcess()) return;
  Process& process = TheProcess();
  process.is_orphan = process.is_orphan || HasContext(process);
  process.tally.Clear();
  process.library_use.Clear();
  process.mutex.unlock();
}

Process& MakeProcess() {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  if (g_process == nullptr) {
    g_process = new Process(ReadSettings());  // never destroyed: programs call CUDA until their very end
    static const int kHooked = pthread_atfork(BeforeFork, InParent, InChild);
    static_cast<void>(kHooked);
  }
  return *g_process;
}

}  // namespace

Process::Process(const Settings& from)
    : settings(from),
      shared(*new SharedMachine(settings.run_folder, settings.devices)),
      failures{settings.fail_call, settings.fail_request, settings.fail_after},
      addresses(ReserveAddresses(settings)),
      devices(MakeDevices(settings, addresses, shared, failures)),
      virtual_memory(devices, allocations),
      streams({settings.lag_queries, settings.lag_ns}, settings.devices) {
  for (int i = 0; i < settings.devices; ++i) {
    const std::uint64_t id = static_cast<std::uint64_t>(i) + 1;
    pools.emplace(id, std::make_unique<PoolModel>(*devices[i], i, id, 0));
    current_pools.push_back(id);
  }
}

void Process::TellCall(const char* call, int device, std::uint64_t bytes, std::uint64_t address, Error error) const {
  if (!calls.is_asked()) return;
  const std::uint64_t place =
      IsDeviceAddress(address) ? (address - addresses.base_address) % addresses.device_bytes : address;
  calls.Add(call, device, bytes, place, error);
}

Process& TheProcess() {
  Process* const made = g_process.load(std::memory_order_acquire);
  return made != nullptr ? *made : MakeProcess();
}

bool HasProcess() { return g_process.load(std::memory_order_acquire) != nullptr; }

bool BeginRun() {
  if (!HasProcess()) return true;
  const Process& process = TheProcess();
  if (process.is_orphan || HasContext(process)) return false;
  munmap(reinterpret_cast<void*>(process.addresses.base_address), process.addresses.total_bytes());
  g_process = nullptr;
  return true;
}

int& CurrentDevice() {
  thread_local int device = 0;
  return device;
}

const Settings& TheSettings() { return TheProcess().settings; }

std::uint64_t UsedBytes(int device) {
  Process& process = TheProcess();
  const std::lock_guard<std::mutex> lock(process.mutex);
  return process.devices[device]->UsedBytes();
}

std::uint64_t TotalBytes(int device) {
  Process& process = TheProcess();
  const std::lock_guard<std::mutex> lock(process.mutex);
  return process.devices[device]->total_bytes();
}

std::vector<ProcessBytes> ProcessesOn(int device) { return TheProcess().shared.Processes(device); }

CublasHold HoldForCublas() {
  Process& process = TheProcess();
  const std::lock_guard<std::mutex> lock(process.mutex);
  const int device = CurrentDevice();
  process.library_use.AddCublas(device);
  return {device, process.devices[device]->HoldForCublas()};
}

void ReturnHold(const CublasHold& hold) {
  Process& process = TheProcess();
  const std::lock_guard<std::mutex> lock(process.mutex);
  process.devices[hold.device]->ReturnHold(hold.number);
  process.library_use.RemoveCublas(hold.device);
}

void NoteCudnn(const LibraryUse::Cudnn& library) { TheProcess().library_use.AddCudnn(library); }
void NoteCudnnPlan(const std::string& graph, std::optional<std::uint64_t> workspace_bytes) {
  TheProcess().library_use.NoteCudnnPlan(graph, workspace_bytes);
}
void NoteCudnnSilence(const std::string& why) { TheProcess().library_use.NoteCudnnSilence(why); }

bool IsKnown(std::uint64_t address, std::uint64_t bytes) {
  Process& process = TheProcess();
  const std::lock_guard<std::mutex> lock(process.mutex);
  return process.known.AreKnown(address, bytes);
}

void Know(std::uint64_t address, std::uint64_t bytes) {
  Process& process = TheProcess();
  const std::lock_guard<std::mutex> lock(process.mutex);
  process.known.Know(address, bytes);
}

void Forget(std::uint64_t address, std::uint64_t bytes) {
  Process& process = TheProcess();
  const std::lock_guard<std::mutex> lock(process.mutex);
  process.known.Forget(address, bytes);
}

}  // namespace ashlar::hollow

namespace ashlar::hollow {
namespace {

std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof(escaped), "\\u%04x", static_cast<unsigned>(c));
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::vector<std::string> CommandLine() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> out;
  for (std::string word; std::getline(in, word, '\0');) out.push_back(word);
  return out;
}

void WriteLibraries(const Allocations::LibraryBytes& libraries, std::ostream& out) {
  out << ",\"libraries\":[";
  const char* comma = "";
  for (const auto& [library, bytes] : libraries) {
    out << comma << "{\"name\":" << Quoted(std::string(library)) << ",\"bytes\":" << bytes << "}";
    comma = ",";
  }
  out << "]";
}

void WriteDevices(Process& process, std::ostream& out) {
  out << "\"devices\":[";
  const char* comma = "";
  for (int i = 0; i < process.settings.devices; ++i) {
    DeviceModel& device = *process.devices[i];
    if (!device.has_context() && device.out_of_memory_count() == 0) continue;
    out << comma << "{\"ordinal\":" << i << ",\"total_bytes\":" << device.total_bytes()
        << ",\"context_bytes\":" << device.context_bytes() << ",\"peak_bytes\":" << process.shared.Peak(i)
        << ",\"used_at_end_bytes\":" << device.UsedBytes() << ",\"out_of_memory\":" << device.out_of_memory_count();
    WriteLibraries(process.allocations.PeakByLibrary(i), out);
    out << "}";
    comma = ",";
  }
  out << "]";
}

void WriteTally(const Tally& tally, std::ostream& out) {
  out << ",\"launches\":" << tally.launches() << ",\"refused\":[";
  const char* comma = "";
  for (const auto& [name, count] : tally.refused()) {
    out << comma << "{\"name\":" << Quoted(name) << ",\"count\":" << count << "}";
    comma = ",";
  }
  out << "],\"made_up\":[";
  comma = "";
  std::uint64_t total = 0;
  for (const auto& [line, made_up] : tally.made_up()) {
    out << comma << "{\"line\":" << Quoted(line) << ",\"count\":" << made_up.count << ",\"bytes\":" << made_up.bytes
        << "}";
    comma = ",";
    total += made_up.count;
  }
  out << "],\"made_up_total\":" << total;
}

// Settings of NCCL by which its memory goes (analyzer/libraries).
constexpr const char* kNcclSettings[] = {"NCCL_BUFFSIZE",           "NCCL_LL_BUFFSIZE",       "NCCL_LL128_BUFFSIZE",
                                         "NCCL_MIN_NCHANNELS",      "NCCL_MAX_NCHANNELS",     "NCCL_MIN_CTAS",
                                         "NCCL_MAX_CTAS",           "NCCL_MIN_P2P_NCHANNELS", "NCCL_MAX_P2P_NCHANNELS",
                                         "NCCL_NCHANNELS_PER_PEER", "NCCL_NVLS_ENABLE",       "NCCL_NVLS_NCHANNELS",
                                         "NCCL_P2P_DISABLE"};

void WriteNcclSettings(std::ostream& out) {
  out << "\"settings\":{";
  const char* comma = "";
  for (const char* name : kNcclSettings) {
    const char* value = std::getenv(name);
    if (value == nullptr) continue;
    out << comma << Quoted(name) << ":" << Quoted(value);
    comma = ",";
  }
  out << "}";
}

void WriteCommunicators(const std::vector<LibraryUse::Communicator>& communicators, std::ostream& out) {
  out << "\"communicators\":[";
  const char* comma = "";
  for (const LibraryUse::Communicator& of : communicators) {
    out << comma << "{\"device\":" << of.device << ",\"ranks\":" << of.ranks
        << ",\"collectives\":" << (of.has_collectives ? "true" : "false") << ",\"peers\":" << of.peers.size()
        << ",\"suspended\":" << (of.is_suspended ? "true" : "false") << "}";
    comma = ",";
  }
  out << "]";
}

void WriteCudnn(const LibraryUse::Cudnn& cudnn, std::ostream& out) {
  out << ",\"cudnn_plans\":{\"library\":" << Quoted(cudnn.library) << ",\"cublaslt\":" << Quoted(cudnn.cublaslt)
      << ",\"device\":" << cudnn.device << ",\"more\":" << cudnn.more << ",\"graphs\":[";
  const char* comma = "";
  for (const auto& [graph, is_answered] : cudnn.graphs) {
    out << comma << graph;
    comma = ",";
  }
  out << "]";
  if (cudnn.is_asked) {
    out << ",\"said\":{\"answered\":" << cudnn.answered << ",\"most_bytes\":" << cudnn.most_bytes
        << ",\"version\":" << cudnn.version << ",\"why_not\":" << Quoted(cudnn.why_silent) << "}";
  }
  out << "}";
}

void WriteLibraryUse(const LibraryUse::Summary& use, std::ostream& out) {
  out << ",\"library_use\":{\"cudnn\":" << (use.has_cudnn ? "true" : "false");
  if (!use.cudnn.graphs.empty() && !use.cudnn.device.empty()) WriteCudnn(use.cudnn, out);
  out << ",\"cublas\":[";
  const char* comma = "";
  for (const auto& [device, handles] : use.cublas_handles) {
    out << comma << "{\"device\":" << device << ",\"handles\":" << handles << "}";
    comma = ",";
  }
  out << "],\"nccl\":{\"version\":" << use.nccl_version << ",";
  WriteNcclSettings(out);
  out << ",";
  WriteCommunicators(use.communicators, out);
  out << "}}";
}

void WriteReport(Process& process) {
  const QuietFileLimit quiet;
  const std::vector<std::string> words = CommandLine();
  std::ostringstream out;
  out << "{\"pid\":" << getpid() << ",\"program\":" << Quoted(words.empty() ? "" : words[0]) << ",\"args\":[";
  for (std::size_t i = 1; i < words.size(); ++i) out << (i > 1 ? "," : "") << Quoted(words[i]);
  out << "],";
  WriteDevices(process, out);
  out << ",\"pinned_peak_bytes\":" << process.allocations.pinned_peak_bytes();
  out << ",\"found_done\":" << process.streams.found_done();
  WriteTally(process.tally, out);
  WriteLibraryUse(process.library_use.Most(), out);
  out << ",\"calls_lost\":" << process.calls.lost() << "}\n";
  const std::string name = process.settings.run_folder + "/process-" + std::to_string(getpid()) + ".json";
  std::ofstream(name + ".part") << out.str();
  std::rename((name + ".part").c_str(), name.c_str());
}

bool UsedADevice(const Process& process) {
  for (const auto& device : process.devices) {
    if (device->has_context() || device->out_of_memory_count() > 0) return true;
  }
  return process.tally.launches() > 0 || !process.tally.refused().empty();
}

}  // namespace

void EndProcess() {
  if (!HasProcess()) return;
  Process& process = TheProcess();
  static std::atomic<int> ended_pid = 0;
  if (ended_pid.exchange(getpid()) == getpid() || process.is_orphan) return;
  const std::unique_lock<std::mutex> lock(process.mutex, std::try_to_lock);  // another thread may hold it for good
  if (!process.settings.run_folder.empty() && UsedADevice(process)) WriteReport(process);
  process.shared.Leave();
}

__attribute__((destructor)) static void AtExit() { EndProcess(); }
__attribute__((constructor)) static void AtStart() { at_quick_exit(EndProcess); }

}  // namespace ashlar::hollow

extern "C" {

// What os._exit and multiprocessing's children call.
__attribute__((visibility("default"), noreturn)) void _exit(int status) {
  ashlar::hollow::EndProcess();
  syscall(SYS_exit_group, status);
  __builtin_unreachable();
}

// The same by the name that C has for it; quick_exit ends in the C library's own.
__attribute__((visibility("default"), noreturn)) void _Exit(int status) noexcept { _exit(status); }

}  // extern "C"
