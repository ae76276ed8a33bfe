#include "hollow/record/recorder.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hollow/abi/library_lines.h"
#include "hollow/interpose/stand_in.h"
#include "hollow/record/books.h"
#include "hollow/record/log.h"
#include "hollow/record/stacks.h"

namespace ashlar::record {
namespace {

constinit interpose::RealFunction<int(int*)> device_of_context("cuCtxGetDevice");
constinit interpose::RealFunction<int(int*)> device_of_runtime("cudaGetDevice");
constinit interpose::RealFunction<int(std::size_t*, std::size_t*)> memory_of_device("cuMemGetInfo_v2");

}  // namespace

int CurrentDevice() {
  int device = 0;
  if (device_of_context(&device) == 0) return device;
  return device_of_runtime(&device) == 0 ? device : 0;
}

DeviceBytes MemoryOfDevice() {
  std::size_t free_bytes = 0, total_bytes = 0;
  if (memory_of_device(&free_bytes, &total_bytes) != 0) return {};
  return {free_bytes, total_bytes};
}

std::atomic<Recording> g_recording = Recording::kUnknown;

namespace {

std::int64_t MicrosecondsOf(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}

struct LogRecorder {
  explicit LogRecorder(const std::string& folder) : log(folder + "/native-" + std::to_string(getpid()) + ".log") {
    start_us = MicrosecondsOf(CLOCK_MONOTONIC);
    log.Append("ashlar-native-log 1\n");
    LogRow row('p');
    row.Decimal(std::int64_t{getpid()}).Decimal(MicrosecondsOf(CLOCK_REALTIME));
    log.Append(row.Finish());
  }

  std::int64_t Now() const { return MicrosecondsOf(CLOCK_MONOTONIC) - start_us; }

  // What a device's memory is by the driver is asked again after so much, and not sooner.
  struct Usage {
    std::uint64_t in_use_bytes = 0;
    std::uint64_t allocated_since = 0;
    std::int64_t asked_us = -kBetweenUs;
  };
  static constexpr std::int64_t kBetweenUs = 20'000;
  static constexpr std::uint64_t kParts = 8;
  bool IsUsageDue(int device, std::uint64_t bytes) {
    Usage& of = usage[device];
    of.allocated_since += bytes;
    return of.allocated_since >= of.in_use_bytes / kParts && Now() - of.asked_us >= kBetweenUs;
  }

  Log log;
  Stacks stacks;
  Books books;
  std::int64_t start_us = 0;
  std::map<int, Usage> usage;  // by device
  bool has_torch = false;
};

std::mutex g_mutex;
interpose::TorchLook g_torch;
LogRecorder* g_recorder = nullptr;  // never destroyed: programs call CUDA until their very end

void BeforeFork() { g_mutex.lock(); }
void InParent() { g_mutex.unlock(); }
// The parent's file stays the parent's; its memory here is let go.
void InChild() {
  delete g_recorder;
  g_recorder = nullptr;
  if (g_recording.load() == Recording::kOn) g_recording = Recording::kUnknown;
  g_mutex.unlock();
}

// Holds the lock while a row is written; false where nothing is recorded any more.
class Writer {
 public:
  enum class Look { kForTorch, kNot };
  explicit Writer(Look look) : lock_(g_mutex) {
    if (look == Look::kNot || g_recorder == nullptr || g_recorder->has_torch || !g_torch.HasTorch()) return;
    LogRow row('t');
    g_recorder->log.Append(row.Decimal(g_recorder->Now()).Finish());
    g_recorder->has_torch = true;
  }
  bool has_torch() const { return g_recorder->has_torch; }
  explicit operator bool() const { return g_recorder != nullptr && !g_recorder->log.is_broken(); }
  LogRow Start(char kind) const {
    LogRow out(kind);
    out.Decimal(g_recorder->Now());
    return out;
  }
  Stacks& stacks() const { return g_recorder->stacks; }
  Books& books() const { return g_recorder->books; }
  Log& log() const { return g_recorder->log; }
  bool IsUsageDue(int device, std::uint64_t bytes) const { return g_recorder->IsUsageDue(device, bytes); }
  void NoteUsage(int device, const DeviceBytes& memory) const {
    g_recorder->usage[device] = {memory.total_bytes - memory.free_bytes, 0, g_recorder->Now()};
  }
  void Append(LogRow& row) const { g_recorder->log.Append(row.Finish()); }

 private:
  const std::lock_guard<std::mutex> lock_;
};

bool HasTorch() {
  const Writer writer(Writer::Look::kForTorch);
  return writer && writer.has_torch();
}

bool IsStreamOrdered(Name name) {
  return std::string_view(interpose::TextOf(name)).find("Async") != std::string_view::npos;
}

// Beside PyTorch, memory in a stream's order is not told: an allocator of its own may ask for each tensor.
bool IsLeftOut(const Caller& caller) { return IsStreamOrdered(caller.name) && HasTorch(); }

// The number of the stack that a call stands in; beside PyTorch, whose history has the stacks, of its innermost frame.
// Names are asked for without our lock: the linker's lock may be held by a thread whose library allocates while it is
// loaded.
std::uint64_t NumberOfStack(const Caller& caller) {
  const Stack stack = HasTorch() ? Stack{{caller.address}, 1} : CaptureStack(caller.address);
  std::vector<const void*> unknown;
  {
    const Writer writer(Writer::Look::kNot);
    if (!writer) return 0;
    if (const auto number = writer.stacks().Find(stack); number.has_value()) return *number;
    unknown = writer.stacks().UnknownFrames(stack);
  }
  std::vector<CodeName> names;
  for (const void* frame : unknown) names.push_back(NameOf(frame));
  const Writer writer(Writer::Look::kNot);
  return writer ? writer.stacks().Add(stack, unknown, names, writer.log()) : 0;
}

// Tells what the driver says is in use of the calling thread's device, an eighth of it after it last did. Not where
// memory is given in the order of a stream: that may be within a capture, where the fewest calls are allowed.
void TellUsage(int device, std::uint64_t bytes) {
  {
    const Writer writer(Writer::Look::kNot);
    if (!writer || !writer.IsUsageDue(device, bytes)) return;
  }
  const DeviceBytes memory = MemoryOfDevice();
  const Writer writer(Writer::Look::kNot);
  if (!writer) return;
  writer.NoteUsage(device, memory);
  LogRow row = writer.Start('g');
  writer.Append(row.Decimal(std::int64_t{device}).Decimal(memory.free_bytes).Decimal(memory.total_bytes));
}

__attribute__((destructor)) void TellEnd() {
  const std::unique_lock<std::mutex> lock(g_mutex, std::try_to_lock);  // another thread may hold it for good
  if (!lock.owns_lock() || g_recorder == nullptr) return;
  LogRow row('e');
  g_recorder->log.Append(row.Decimal(g_recorder->Now()).Finish());
}

}  // namespace

Recording StartRecording() {
  const std::lock_guard<std::mutex> lock(g_mutex);
  if (g_recording != Recording::kUnknown) return g_recording;
  static const bool is_watched = pthread_atfork(BeforeFork, InParent, InChild) == 0;
  const char* folder = std::getenv("ASHLAR_RECORD");
  const bool is_on = is_watched && folder != nullptr && *folder != '\0';
  if (is_on) g_recorder = new LogRecorder(folder);
  g_recording = is_on ? Recording::kOn : Recording::kOff;
  return g_recording;
}

void TellAllocation(const Caller& caller, const Asked& asked, std::uint64_t address) {
  if (address == 0 || IsLeftOut(caller)) return;  // 0: no bytes were asked for
  const int device = asked.device >= 0 ? asked.device : CurrentDevice();
  const std::uint64_t stack = NumberOfStack(caller);
  {
    const Writer writer(Writer::Look::kNot);
    if (!writer) return;
    LogRow row = writer.Start('a');
    row.Decimal(std::int64_t{device}).Hex(address).Decimal(asked.bytes).Hex(asked.stream).Decimal(stack);
    writer.Append(row.Text(interpose::TextOf(caller.name)));
    writer.books().Allocate({device, asked.bytes, writer.stacks().FileOf(stack)}, address);
  }
  if (!IsStreamOrdered(caller.name)) TellUsage(device, asked.bytes);
}

void TellFailure(const Caller& caller, const Asked& asked, int result) {
  if (IsLeftOut(caller)) return;
  const int device = asked.device >= 0 ? asked.device : CurrentDevice();
  const DeviceBytes memory = MemoryOfDevice();
  const std::uint64_t stack = NumberOfStack(caller);
  const Writer writer(Writer::Look::kNot);
  if (!writer) return;
  LogRow row = writer.Start('o');
  row.Decimal(std::int64_t{device}).Decimal(asked.bytes).Decimal(memory.free_bytes).Decimal(memory.total_bytes);
  row.Hex(asked.stream).Decimal(stack).Text(interpose::TextOf(caller.name)).Decimal(std::int64_t{result});
  writer.Append(row);
}

namespace {

// What the thread's last free gave up, which it takes back where it fails.
thread_local std::optional<Books::Holding> t_freed;

}  // namespace

void TellFree(const Caller& caller, const void* pointer) {
  t_freed.reset();
  if (IsLeftOut(caller)) return;
  const std::uint64_t stack = NumberOfStack(caller);
  const Writer writer(Writer::Look::kNot);
  if (!writer) return;
  LogRow row = writer.Start('d');
  row.Hex(NumberOf(pointer)).Decimal(stack).Text(interpose::TextOf(caller.name));
  writer.Append(row);
  t_freed = writer.books().Free(NumberOf(pointer));
}

void TellKept(const void* pointer, int result) {
  const Writer writer(Writer::Look::kNot);
  if (!writer) return;
  LogRow row = writer.Start('k');
  writer.Append(row.Hex(NumberOf(pointer)).Decimal(std::int64_t{result}));
  if (t_freed.has_value()) writer.books().Allocate(*t_freed, NumberOf(pointer));
}

void TellReset(const Caller& caller, int device) {
  const Writer writer(Writer::Look::kNot);
  if (!writer) return;
  LogRow row = writer.Start('x');
  writer.Append(row.Decimal(std::int64_t{device}).Text(interpose::TextOf(caller.name)));
  writer.books().Reset(device);
}

void TellCreated(const Caller& caller, const Asked& asked, std::uint64_t handle) {
  const std::uint64_t stack = NumberOfStack(caller);
  const Writer writer(Writer::Look::kNot);
  if (!writer) return;
  LogRow row = writer.Start('c');
  row.Decimal(std::int64_t{asked.device}).Hex(handle).Decimal(asked.bytes).Decimal(stack);
  writer.Append(row.Text(interpose::TextOf(caller.name)));
  writer.books().Create({asked.device, asked.bytes, writer.stacks().FileOf(stack)}, handle);
}

void TellMapped(const Caller& caller, const Mapping& mapping) {
  const std::uint64_t stack = NumberOfStack(caller);
  {
    const Writer writer(Writer::Look::kNot);
    if (!writer) return;
    LogRow row = writer.Start('m');
    row.Hex(mapping.address).Decimal(mapping.bytes).Hex(mapping.handle).Decimal(mapping.offset).Decimal(stack);
    writer.Append(row.Text(interpose::TextOf(caller.name)));
    writer.books().Map(mapping.handle, mapping.bytes, mapping.address);
  }
  TellUsage(CurrentDevice(), mapping.bytes);
}

void TellUnmapped(const Caller& caller, std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t stack = NumberOfStack(caller);
  const Writer writer(Writer::Look::kNot);
  if (!writer) return;
  LogRow row = writer.Start('u');
  row.Hex(address).Decimal(bytes).Decimal(stack).Text(interpose::TextOf(caller.name));
  writer.Append(row);
  writer.books().Unmap(address, bytes);
}

}  // namespace ashlar::record

// What the process holds of the device by the file of the code that asked, as library_lines.h writes it; 0: nothing is
// recorded. For what we put into programs of Python: it has no header, and is looked up by name.
extern "C" __attribute__((visibility("default"))) std::size_t ashlar_record_libraries(int device, char* text,
                                                                                      std::size_t size) {
  ashlar::hollow::LibraryLines lines(text, size);
  const ashlar::record::Writer writer(ashlar::record::Writer::Look::kNot);
  if (!writer) return 0;
  for (const auto& [file, held] : writer.books().Of(device)) lines.Add(held.bytes, held.blocks, file);
  return lines.used();
}
