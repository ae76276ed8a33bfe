#include "hollow/surfaces/cuda_streams.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "hollow/launch/host_thread.h"
#include "hollow/surfaces/cuda_memory.h"
#include "hollow/surfaces/cuda_pools.h"
#include "hollow/surfaces/stream_work.h"

namespace ashlar::hollow {
namespace {

constexpr std::uint64_t kLegacy = 1;     // cudaStreamLegacy
constexpr std::uint64_t kPerThread = 2;  // cudaStreamPerThread

// Whether a kernel has to be told to the streams: under a capture, or with a lag.
bool StreamsWatch(Process& process) { return process.streams.is_capturing() || !process.streams.lag().is_none(); }

// What `find` gives, a stream or an event: its work is done when this returns, and its host functions have run.
template <typename Find>
Error SynchronizeOn(Find find) {
  Process& process = TheProcess();
  std::uint64_t ticket = 0;
  {
    const std::lock_guard<std::mutex> lock(process.mutex);
    auto* found = find(process);
    if (found == nullptr) return Error::kInvalidHandle;
    if (const Error error = process.streams.Synchronize(*found); error != Error::kNone) return error;
    TrimPools(process, found->device);
    ticket = found->host_ticket;
  }
  HostThread::The().WaitFor(ticket);
  return Error::kNone;
}

}  // namespace

Stream* StreamOf(Process& process, const void* handle) {
  const std::uint64_t number = AddressOf(handle);
  if (number <= kLegacy) return &process.streams.Default(CurrentDevice());
  if (number == kPerThread) {
    thread_local std::map<int, Stream*> own;  // by device
    Stream*& stream = own[CurrentDevice()];
    if (stream == nullptr) stream = process.streams.Create(CurrentDevice(), 0, 0);
    return stream;
  }
  return process.streams.FindStream(handle);
}

Event* EventOf(Process& process, const void* handle) { return process.streams.FindEvent(handle); }

Error CreateStream(Process& process, unsigned flags, int priority, void** stream) {
  if (stream == nullptr || flags > 1) return Error::kInvalidValue;
  if (const Error error = UseDevice(process, CurrentDevice()); error != Error::kNone) return error;
  // A priority outside the range is taken as the nearest in it (cudaStreamCreateWithPriority).
  Stream* made = process.streams.Create(CurrentDevice(), flags, std::clamp(priority, kGreatestPriority, 0));
  made->hold = process.devices[CurrentDevice()]->HoldForStream();
  *stream = made;
  return Error::kNone;
}

Error DestroyStream(Process& process, void* handle) {
  Stream* stream = process.streams.FindStream(handle);
  if (stream == nullptr) return Error::kInvalidHandle;
  StreamDestroyed(handle);
  process.devices[stream->device]->ReturnHold(stream->hold);
  return process.streams.Destroy(*stream);
}

Error CreateEvent(Process& process, unsigned flags, void** event) {
  if (event == nullptr) return Error::kInvalidValue;
  if (const Error error = UseDevice(process, CurrentDevice()); error != Error::kNone) return error;
  *event = process.streams.CreateEvent(CurrentDevice(), flags);
  return Error::kNone;
}

Error DestroyEvent(Process& process, void* handle) {
  Event* event = EventOf(process, handle);
  if (event == nullptr) return Error::kInvalidHandle;
  EventDestroyed(handle);
  process.streams.Destroy(*event);
  return Error::kNone;
}

Error ElapsedTime(Process& process, const void* begin, const void* end, float* ms) {
  const Event* first = EventOf(process, begin);
  const Event* last = EventOf(process, end);
  if (first == nullptr || last == nullptr) return Error::kInvalidHandle;
  return ms == nullptr ? Error::kInvalidValue : process.streams.ElapsedMs(*first, *last, ms);
}

Error ExportEvent(Process& process, const void* event, abi::IpcHandle* handle) {
  const Event* known = EventOf(process, event);
  if (known == nullptr) return Error::kInvalidHandle;
  if (handle == nullptr || (known->flags & kEventInterprocess) == 0) return Error::kInvalidValue;
  *handle = {};
  handle->bytes[0] = static_cast<unsigned char>(known->flags);
  return Error::kNone;
}

Error GiveWork(void* handle, NodeKind kind, const std::function<void()>& action) {
  Process& process = TheProcess();
  bool runs_now = false;
  {
    const std::lock_guard<std::mutex> lock(process.mutex);
    if (const Error error = UseDevice(process, CurrentDevice()); error != Error::kNone) return error;
    Stream* stream = StreamOf(process, handle);
    if (stream == nullptr) return Error::kInvalidHandle;
    const Error error = process.streams.Submit(*stream, kind, action, &runs_now);
    if (error != Error::kNone) return error;
  }
  if (runs_now && action) action();
  return Error::kNone;
}

Error GiveKernel(void* handle) {
  Process& process = TheProcess();
  process.tally.AddLaunch();
  thread_local std::uint64_t used_devices = 0;  // a bit for each, whose context this thread has seen
  const std::uint64_t bit = std::uint64_t{1} << CurrentDevice();
  if ((used_devices & bit) != 0 && !StreamsWatch(process)) return Error::kNone;
  const Error error = GiveWork(handle, NodeKind::kKernel, {});
  if (error == Error::kNone) used_devices |= bit;
  return error;
}

Error GiveHostFunction(void* handle, std::function<void()> function) {
  Process& process = TheProcess();
  const std::uint64_t number = AddressOf(handle);
  const auto add = [&process, number, device = CurrentDevice(), function = std::move(function)] {
    const std::uint64_t ticket = HostThread::The().Add(function);
    const std::lock_guard<std::mutex> lock(process.mutex);
    Stream* stream = number > kPerThread ? process.streams.FindStream(PointerTo(number)) : nullptr;
    (stream != nullptr ? *stream : process.streams.Default(device)).host_ticket = ticket;
  };
  return GiveWork(handle, NodeKind::kHost, add);
}

Error SynchronizeStream(void* handle) {
  if (TheProcess().is_orphan) return Error::kNotInitialized;
  if (!SettleStream(CurrentDevice(), handle)) return Error::kLaunchFailure;
  return SynchronizeOn([handle](Process& process) { return StreamOf(process, handle); });
}

Error QueryStream(void* handle) {
  Process& process = TheProcess();
  if (process.is_orphan) return Error::kNotInitialized;
  if (!StreamIsDone(CurrentDevice(), handle)) return Error::kNotReady;
  const std::lock_guard<std::mutex> lock(process.mutex);
  Stream* stream = StreamOf(process, handle);
  if (stream == nullptr) return Error::kInvalidHandle;
  return process.streams.Query(*stream, HostThread::The().done());
}

Error SynchronizeEvent(void* handle) {
  if (TheProcess().is_orphan) return Error::kNotInitialized;
  if (!SettleEvent(handle)) return Error::kLaunchFailure;
  return SynchronizeOn([handle](Process& process) { return EventOf(process, handle); });
}

Error QueryEvent(void* handle) {
  Process& process = TheProcess();
  if (process.is_orphan) return Error::kNotInitialized;
  if (!EventIsDone(handle)) return Error::kNotReady;
  const std::lock_guard<std::mutex> lock(process.mutex);
  Event* event = EventOf(process, handle);
  if (event == nullptr) return Error::kInvalidHandle;
  return process.streams.Query(*event, HostThread::The().done());
}

Error SynchronizeDevice() {
  Process& process = TheProcess();
  if (!SettleDevice(CurrentDevice())) return Error::kLaunchFailure;
  std::uint64_t ticket = 0;
  {
    const std::lock_guard<std::mutex> lock(process.mutex);
    if (const Error error = UseDevice(process, CurrentDevice()); error != Error::kNone) return error;
    if (const Error error = CheckUnsafe(process); error != Error::kNone) return error;
    process.streams.SynchronizeDevice(CurrentDevice());
    TrimPools(process, CurrentDevice());
    ticket = process.streams.LastHostTicket(CurrentDevice());
  }
  HostThread::The().WaitFor(ticket);
  return Error::kNone;
}

Error RecordEvent(void* event_handle, void* stream_handle, unsigned flags) {
  Process& process = TheProcess();
  if (process.is_orphan) return Error::kNotInitialized;
  if (flags > kEventExternal) return Error::kInvalidValue;
  const std::lock_guard<std::mutex> lock(process.mutex);
  Event* event = EventOf(process, event_handle);
  Stream* stream = StreamOf(process, stream_handle);
  if (event == nullptr || stream == nullptr) return Error::kInvalidHandle;
  if (event->device != stream->device) return Error::kInvalidHandle;
  if (flags == kEventExternal) return process.streams.SubmitEvent(*stream, NodeKind::kRecordEvent, *event);
  EventRecorded(event_handle, stream->device, stream_handle);
  return process.streams.Record(*event, *stream);
}

Error WaitForEvent(void* stream_handle, void* event_handle, unsigned flags) {
  Process& process = TheProcess();
  if (process.is_orphan) return Error::kNotInitialized;
  if (flags > kEventExternal) return Error::kInvalidValue;
  const std::lock_guard<std::mutex> lock(process.mutex);
  Event* event = EventOf(process, event_handle);
  Stream* stream = StreamOf(process, stream_handle);
  if (event == nullptr || stream == nullptr) return Error::kInvalidHandle;
  if (flags == kEventExternal) return process.streams.SubmitEvent(*stream, NodeKind::kWaitEvent, *event);
  StreamWaits(stream->device, stream_handle, event_handle);
  return process.streams.Wait(*stream, *event);
}

Error WaitForLegacy() {
  Process& process = TheProcess();
  if (!SettleStream(CurrentDevice(), nullptr)) return Error::kLaunchFailure;
  std::uint64_t ticket = 0;
  {
    const std::lock_guard<std::mutex> lock(process.mutex);
    if (const Error error = UseDevice(process, CurrentDevice()); error != Error::kNone) return error;
    if (const Error error = process.streams.CheckLegacyCall(); error != Error::kNone) return error;
    if (const Error error = CheckUnsafe(process); error != Error::kNone) return error;
    process.streams.SynchronizeBlocking(CurrentDevice());
    ticket = process.streams.LastHostTicket(CurrentDevice());
  }
  HostThread::The().WaitFor(ticket);
  return Error::kNone;
}

}  // namespace ashlar::hollow
