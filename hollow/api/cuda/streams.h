// Shared by the runtime's and the driver's calls on streams, events, captures and copies.
#ifndef ASHLAR_HOLLOW_API_CUDA_STREAMS_H_
#define ASHLAR_HOLLOW_API_CUDA_STREAMS_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "hollow/abi/cuda_types.h"
#include "hollow/model/error.h"
#include "hollow/process/process.h"

namespace ashlar::hollow {

inline constexpr int kGreatestPriority = -5;  // as devices of compute capability 7.0 and later answer; the least is 0

// With the process's lock held. The stream of a handle: 0 and 1 are the current device's default stream, 2 the calling
// thread's, else one that was created; nullptr where there is none.
StreamModel* StreamOf(Process& process, const void* handle);
EventModel* EventOf(Process& process, const void* handle);

Error CreateStream(Process& process, unsigned flags, int priority, void** stream);
Error DestroyStream(Process& process, void* stream);
Error CreateEvent(Process& process, unsigned flags, void** event);
Error DestroyEvent(Process& process, void* event);
Error ElapsedTime(Process& process, const void* begin, const void* end, float* ms);
// For other processes, whose work is done when it is given: there it is an event of the same flags, done at once.
Error ExportEvent(Process& process, const void* event, abi::IpcHandle* handle);

// Without the lock. Work of a stream: under capture it becomes a node, else `action`, which takes no lock of its own
// before, is done at once, without the lock.
Error GiveWork(void* stream, NodeKind kind, const std::function<void()>& action);
// A kernel: nothing runs it. As cheap as it can be where no stream is captured and no lag is asked for.
Error GiveKernel(void* stream);
Error GiveHostFunction(void* stream, std::function<void()> function);
Error SynchronizeStream(void* stream);
Error QueryStream(void* stream);
Error SynchronizeEvent(void* event);
Error QueryEvent(void* event);
Error SynchronizeDevice();
// An event is done only when the host functions before it are. `flags`: kEventExternal is allowed under capture only.
inline constexpr unsigned kEventExternal = 1;  // cudaEventRecordExternal, cudaEventWaitExternal
Error WaitForEvent(void* stream, void* event, unsigned flags = 0);
Error RecordEvent(void* event, void* stream, unsigned flags = 0);

// Copies of bytes between any two addresses, one by one row: `to_pitch` and `from_pitch` are the distances of rows,
// `to_slice` and `from_slice` those of slices, of which there are `depth`.
// What is known of a device's bytes goes with them; a read of others by the host is a made-up value. More than the
// settings' real_bytes is dropped, except between addresses of the host.
struct CopyShape {
  std::uint64_t width = 0;  // bytes of a row
  std::uint64_t height = 1;
  std::uint64_t to_pitch = 0;
  std::uint64_t from_pitch = 0;
  std::uint64_t depth = 1;
  std::uint64_t to_slice = 0;
  std::uint64_t from_slice = 0;

  bool is_empty() const { return width == 0 || height == 0 || depth == 0; }
  std::uint64_t bytes() const { return width * height * depth; }
};
struct CopyWork {
  void* to;
  const void* from;
  CopyShape shape;
};
Error CopyBytes(void* to, const void* from, const CopyShape& shape);
// The pattern of `element_bytes` (1, 2 or 4), over rows.
Error FillBytes(void* to, std::uint32_t pattern, unsigned element_bytes, const CopyShape& shape);

// On a stream: the copy is work of it.
Error CopyOnStream(void* to, const void* from, const CopyShape& shape, void* stream);
// Whether a copy of this cudaMemcpyKind may go from there to there: what the kind calls a device's is CUDA's memory,
// pinned memory of the host too. Nothing is asked of a copy of nothing.
Error CheckKind(const void* to, const void* from, const CopyShape& shape, int kind);
Error FillOnStream(void* to, std::uint32_t pattern, unsigned element_bytes, const CopyShape& shape, void* stream);
// A call that waits for all work of the device's blocking streams, as cudaMemcpy does.
Error WaitForLegacy();

// Shared by the runtime's and the driver's calls on captures of streams. Each is called with the process's lock held.

Error BeginCapture(Process& process, void* stream, int mode);
// Into a graph of the program's, after these nodes of it.
Error BeginCaptureInto(Process& process, void* stream, int mode, void* graph, GraphNode* const* after,
                       std::size_t count);
Error EndCapture(Process& process, void* stream, void** graph);

// What a capture of the stream is in; all but the status may be nullptr, and are written only where one is under way.
struct CaptureOut {
  int* status = nullptr;  // 0: none, 1: under way, 2: invalid
  unsigned long long* id = nullptr;
  void** graph = nullptr;
  GraphNode* const** after = nullptr;  // what the next work comes after: valid until the stream is given more
  const void** edges = nullptr;        // cudaGraphEdgeData of each: plain
  std::size_t* count = nullptr;
};
Error ReadCapture(Process& process, void* stream, const CaptureOut& out);
// cudaStreamUpdateCaptureDependenciesFlags: 0 adds the nodes to those that the next work comes after, 1 replaces them.
Error SetCaptureAfter(Process& process, void* stream, GraphNode* const* nodes, std::size_t count, unsigned flags);

// The mode of the calling thread and the one that it had (cudaThreadExchangeStreamCaptureMode).
Error ExchangeCaptureMode(int* mode);

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_API_CUDA_STREAMS_H_
