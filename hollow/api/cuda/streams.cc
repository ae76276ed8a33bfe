#include "hollow/api/cuda/streams.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "hollow/api/cuda/graphs.h"
#include "hollow/api/cuda/memory.h"
#include "hollow/api/cuda/stream_work.h"
#include "hollow/api/surface.h"
#include "hollow/process/host_thread.h"
#include "hollow/process/process.h"

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

StreamModel* StreamOf(Process& process, const void* handle) {
  const std::uint64_t number = AddressOf(handle);
  if (number <= kLegacy) return &process.streams.Default(CurrentDevice());
  if (number == kPerThread) {
    thread_local std::map<int, StreamModel*> own;  // by device
    StreamModel*& stream = own[CurrentDevice()];
    if (stream == nullptr) stream = process.streams.Create(CurrentDevice(), 0, 0);
    return stream;
  }
  return process.streams.FindStream(handle);
}

EventModel* EventOf(Process& process, const void* handle) { return process.streams.FindEvent(handle); }

Error CreateStream(Process& process, unsigned flags, int priority, void** stream) {
  if (stream == nullptr || flags > 1) return Error::kInvalidValue;
  if (const Error error = UseDevice(process, CurrentDevice()); error != Error::kNone) return error;
  // A priority outside the range is taken as the nearest in it (cudaStreamCreateWithPriority).
  StreamModel* made = process.streams.Create(CurrentDevice(), flags, std::clamp(priority, kGreatestPriority, 0));
  made->hold = process.devices[CurrentDevice()]->HoldForStream();
  *stream = made;
  return Error::kNone;
}

Error DestroyStream(Process& process, void* handle) {
  StreamModel* stream = process.streams.FindStream(handle);
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
  EventModel* event = EventOf(process, handle);
  if (event == nullptr) return Error::kInvalidHandle;
  EventDestroyed(handle);
  process.streams.Destroy(*event);
  return Error::kNone;
}

Error ElapsedTime(Process& process, const void* begin, const void* end, float* ms) {
  const EventModel* first = EventOf(process, begin);
  const EventModel* last = EventOf(process, end);
  if (first == nullptr || last == nullptr) return Error::kInvalidHandle;
  return ms == nullptr ? Error::kInvalidValue : process.streams.ElapsedMs(*first, *last, ms);
}

Error ExportEvent(Process& process, const void* event, abi::IpcHandle* handle) {
  const EventModel* known = EventOf(process, event);
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
    StreamModel* stream = StreamOf(process, handle);
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
    StreamModel* stream = number > kPerThread ? process.streams.FindStream(PointerTo(number)) : nullptr;
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
  StreamModel* stream = StreamOf(process, handle);
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
  EventModel* event = EventOf(process, handle);
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
  EventModel* event = EventOf(process, event_handle);
  StreamModel* stream = StreamOf(process, stream_handle);
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
  EventModel* event = EventOf(process, event_handle);
  StreamModel* stream = StreamOf(process, stream_handle);
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

namespace {

bool IsMode(int mode) { return mode >= 0 && mode <= static_cast<int>(CaptureMode::kRelaxed); }

}  // namespace

Error BeginCapture(Process& process, void* handle, int mode) {
  StreamModel* stream = StreamOf(process, handle);
  if (stream == nullptr) return Error::kInvalidHandle;
  if (!IsMode(mode)) return Error::kInvalidValue;
  return process.streams.BeginCapture(*stream, static_cast<CaptureMode>(mode), ThreadNumber());
}

Error BeginCaptureInto(Process& process, void* handle, int mode, void* graph_handle, GraphNode* const* after,
                       std::size_t count) {
  StreamModel* stream = StreamOf(process, handle);
  const Graph* graph = GraphOf(process, graph_handle);
  if (stream == nullptr) return Error::kInvalidHandle;
  if (graph == nullptr || !IsMode(mode) || (after == nullptr && count > 0)) return Error::kInvalidValue;
  if (stream->capture != nullptr) return Error::kIllegalState;
  std::vector<GraphNode*> nodes(after, after + count);
  for (const GraphNode* node : nodes) {
    if (!graph->Has(node)) return Error::kInvalidValue;
  }
  std::unique_ptr<Graph> taken = TakeGraph(process, graph_handle);
  if (taken == nullptr) return Error::kIllegalState;  // another stream's work is being captured into it
  return process.streams.BeginCapture(*stream, static_cast<CaptureMode>(mode), ThreadNumber(), std::move(taken),
                                      std::move(nodes));
}

Error EndCapture(Process& process, void* handle, void** graph) {
  StreamModel* stream = StreamOf(process, handle);
  if (stream == nullptr) return Error::kInvalidHandle;
  if (graph == nullptr) return Error::kInvalidValue;
  *graph = nullptr;
  std::unique_ptr<Graph> captured;
  const Error error = process.streams.EndCapture(*stream, ThreadNumber(), &captured);
  void* kept = captured == nullptr ? nullptr : KeepGraph(process, std::move(captured));
  if (error == Error::kNone) *graph = kept;
  return error;
}

Error ReadCapture(Process& process, void* handle, const CaptureOut& out) {
  if (out.status == nullptr) return Error::kInvalidValue;
  const StreamModel* stream = StreamOf(process, handle);
  if (stream == nullptr) return Error::kInvalidHandle;
  *out.status = stream->capture == nullptr ? 0 : stream->capture->is_valid ? 1 : 2;
  if (*out.status != 1) return Error::kNone;
  thread_local std::vector<std::uint64_t> edges;
  edges.assign(stream->frontier.size(), 0);
  if (out.id != nullptr) *out.id = stream->capture->id;
  if (out.graph != nullptr) *out.graph = stream->capture->graph.get();
  if (out.after != nullptr) *out.after = stream->frontier.data();
  if (out.edges != nullptr) *out.edges = edges.data();
  if (out.count != nullptr) *out.count = stream->frontier.size();
  return Error::kNone;
}

Error SetCaptureAfter(Process& process, void* handle, GraphNode* const* nodes, std::size_t count, unsigned flags) {
  StreamModel* stream = StreamOf(process, handle);
  if (stream == nullptr) return Error::kInvalidHandle;
  if (stream->capture == nullptr) return Error::kIllegalState;
  if (flags > 1 || (nodes == nullptr && count > 0)) return Error::kInvalidValue;
  for (std::size_t i = 0; i < count; ++i) {
    if (!stream->capture->graph->Has(nodes[i])) return Error::kInvalidValue;
  }
  if (flags == 1) stream->frontier.clear();
  stream->frontier.insert(stream->frontier.end(), nodes, nodes + count);
  return Error::kNone;
}

Error ExchangeCaptureMode(int* mode) {
  if (mode == nullptr || !IsMode(*mode)) return Error::kInvalidValue;
  const CaptureMode wanted = static_cast<CaptureMode>(*mode);
  *mode = static_cast<int>(ThreadCaptureMode());
  ThreadCaptureMode() = wanted;
  return Error::kNone;
}

// Copies and fills (streams.h).

namespace {

enum class Side : std::uint8_t { kHost, kDevice, kVariable, kNowhere };

// Where the bytes lie; kVariable: memory of the host, which stands for a variable of device code; kNowhere: in the
// device's addresses, but not all of them allocated.
Side SideOf(const Process& process, std::uint64_t address, std::uint64_t bytes) {
  const Allocation* allocation = process.allocations.Holding(address);
  if (allocation == nullptr) return process.IsDeviceAddress(address) ? Side::kNowhere : Side::kHost;
  if (allocation->is_on_host()) return Side::kHost;
  if (allocation->kind == MemoryKind::kVariable) return Side::kVariable;
  std::uint64_t reached = allocation->address + allocation->size_bytes;
  while (reached < address + bytes) {  // mappings of one reservation lie side by side
    const Allocation* next = process.allocations.Holding(reached);
    if (next == nullptr || next->kind != MemoryKind::kMapped) return Side::kNowhere;
    reached = next->address + next->size_bytes;
  }
  return Side::kDevice;
}

// From the first byte to the last, those between rows included.
std::uint64_t Span(const CopyShape& shape, std::uint64_t pitch, std::uint64_t slice) {
  return shape.is_empty() ? 0 : (shape.depth - 1) * slice + (shape.height - 1) * pitch + shape.width;
}
std::uint64_t ToSpan(const CopyShape& shape) { return Span(shape, shape.to_pitch, shape.to_slice); }
std::uint64_t FromSpan(const CopyShape& shape) { return Span(shape, shape.from_pitch, shape.from_slice); }

// Calls `visit` with where each row begins: from the first byte written, and from the first one read.
template <typename Visit>
void EachRow(const CopyShape& shape, Visit visit) {
  for (std::uint64_t slice = 0; slice < shape.depth; ++slice) {
    for (std::uint64_t row = 0; row < shape.height; ++row) {
      visit(slice * shape.to_slice + row * shape.to_pitch, slice * shape.from_slice + row * shape.from_pitch);
    }
  }
}

// One row, all of it real. Returns how many of the bytes are made up. Bytes of a device that are not known are written
// as --values says where the host reads them. A variable has what the host wrote last: what a kernel made of it since
// then is not known.
std::uint64_t CopyRow(Process& process, std::uint64_t to, Side to_side, std::uint64_t from, Side from_side,
                      std::uint64_t bytes) {
  if (from_side != Side::kDevice) {
    std::memmove(PointerTo(to), PointerTo(from), bytes);
    if (to_side == Side::kDevice) process.known.Know(to, bytes);
    return from_side == Side::kVariable && to_side == Side::kHost ? bytes : 0;
  }
  if (to_side != Side::kHost) {
    std::memmove(PointerTo(to), PointerTo(from), bytes);
    if (to_side == Side::kDevice) process.known.Carry(from, to, bytes);
    return 0;
  }
  if (ReadsAreGiven()) {
    WriteMadeUp(PointerTo(to), bytes);
    return bytes;
  }
  const std::uint64_t known = process.known.CountKnown(from, bytes);
  if (known < bytes) WriteMadeUp(PointerTo(to), bytes);
  for (const auto& [begin, size_bytes] : process.known.RangesIn(from, bytes)) {
    std::memcpy(PointerTo(to + (begin - from)), PointerTo(begin), size_bytes);
  }
  return bytes - known;
}

// More than is real: nothing moves. Returns how many bytes the host would have read.
std::uint64_t DropCopy(Process& process, std::uint64_t to, Side to_side, const CopyShape& shape) {
  if (to_side == Side::kHost) return shape.bytes();
  EachRow(shape, [&](std::uint64_t at, std::uint64_t) { process.known.Forget(to + at, shape.width); });
  return 0;
}

}  // namespace

Error CheckKind(const void* to, const void* from, const CopyShape& shape, int kind) {
  constexpr int kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 3, kDefault = 4;
  if (kind < 0 || kind > kDefault) return Error::kInvalidMemcpyDirection;
  if (shape.is_empty()) return Error::kNone;
  Process& process = TheProcess();
  const std::lock_guard<std::mutex> lock(process.mutex);
  const auto is_known = [&](const void* pointer) { return process.allocations.Holding(AddressOf(pointer)) != nullptr; };
  const bool has_target = (kind != kHostToDevice && kind != kDeviceToDevice) || is_known(to);
  const bool has_source = (kind != kDeviceToHost && kind != kDeviceToDevice) || is_known(from);
  return has_target && has_source ? Error::kNone : Error::kInvalidValue;
}

Error CopyBytes(void* to_pointer, const void* from_pointer, const CopyShape& shape) {
  if (shape.is_empty()) return Error::kNone;
  Process& process = TheProcess();
  const std::uint64_t to = AddressOf(to_pointer);
  const std::uint64_t from = AddressOf(from_pointer);
  if (!SettleRange(from, FromSpan(shape)) || !SettleRange(to, ToSpan(shape))) return Error::kLaunchFailure;
  std::uint64_t made_up = 0;
  {
    std::unique_lock<std::mutex> lock(process.mutex);
    const Side to_side = SideOf(process, to, ToSpan(shape));
    const Side from_side = SideOf(process, from, FromSpan(shape));
    if (to == 0 || from == 0 || to_side == Side::kNowhere || from_side == Side::kNowhere) return Error::kInvalidValue;
    const bool is_on_host = to_side == Side::kHost && from_side == Side::kHost;
    if (is_on_host) lock.unlock();
    if (is_on_host || shape.bytes() <= process.settings.real_bytes) {
      EachRow(shape, [&](std::uint64_t to_at, std::uint64_t from_at) {
        made_up += CopyRow(process, to + to_at, to_side, from + from_at, from_side, shape.width);
      });
    } else {
      made_up = DropCopy(process, to, to_side, shape);
    }
  }
  if (made_up > 0) CountMadeUp(made_up);
  return Error::kNone;
}

Error FillBytes(void* to_pointer, std::uint32_t pattern, unsigned element_bytes, const CopyShape& shape) {
  if (shape.is_empty()) return Error::kNone;
  Process& process = TheProcess();
  const std::uint64_t to = AddressOf(to_pointer);
  if (!SettleRange(to, ToSpan(shape))) return Error::kLaunchFailure;
  const std::lock_guard<std::mutex> lock(process.mutex);
  const Side side = SideOf(process, to, ToSpan(shape));
  const bool is_known =
      process.allocations.Holding(to) != nullptr;  // memory of the host alone is not the device's to fill
  if (to == 0 || side == Side::kNowhere || !is_known) return Error::kInvalidValue;
  const bool is_small = side == Side::kHost || shape.bytes() <= process.settings.real_bytes;
  EachRow(shape, [&](std::uint64_t at, std::uint64_t) {
    const std::uint64_t begin = to + at;
    for (std::uint64_t i = 0; is_small && i < shape.width; i += element_bytes) {
      std::memcpy(PointerTo(begin + i), &pattern, element_bytes);
    }
    if (side != Side::kDevice) return;
    is_small ? process.known.Know(begin, shape.width) : process.known.Forget(begin, shape.width);
  });
  return Error::kNone;
}

// That all bytes of the copy are somewhere, before it is given to a stream.
static Error CheckSides(void* to, const void* from, const CopyShape& shape) {
  if (shape.is_empty()) return Error::kNone;
  Process& process = TheProcess();
  const std::lock_guard<std::mutex> lock(process.mutex);
  if (to == nullptr || SideOf(process, AddressOf(to), ToSpan(shape)) == Side::kNowhere) {
    return Error::kInvalidValue;
  }
  const bool reads = from != to;  // a fill names its own target
  if (reads && from == nullptr) return Error::kInvalidValue;
  return SideOf(process, AddressOf(from), FromSpan(shape)) == Side::kNowhere ? Error::kInvalidValue : Error::kNone;
}

// Work that is done now tells its error; a graph's has nobody to tell.
template <typename Copy>
static Error GiveCopy(void* stream, NodeKind kind, Copy copy) {
  auto done = std::make_shared<Error>(Error::kNone);
  const Error error = GiveWork(stream, kind, [copy, done] { *done = copy(); });
  return error == Error::kNone ? *done : error;
}

Error CopyOnStream(void* to, const void* from, const CopyShape& shape, void* stream) {
  if (const Error error = CheckSides(to, from, shape); error != Error::kNone) return error;
  return GiveCopy(stream, NodeKind::kCopy, [=] { return CopyBytes(to, from, shape); });
}

Error FillOnStream(void* to, std::uint32_t pattern, unsigned element_bytes, const CopyShape& shape, void* stream) {
  CopyShape itself = shape;
  itself.from_pitch = shape.to_pitch;
  itself.from_slice = shape.to_slice;
  if (const Error error = CheckSides(to, to, itself); error != Error::kNone) return error;
  return GiveCopy(stream, NodeKind::kFill, [=] { return FillBytes(to, pattern, element_bytes, shape); });
}

}  // namespace ashlar::hollow
