// Shared by the runtime's and the driver's calls on captures of streams. Each is called with the process's lock held.
#ifndef ASHLAR_HOLLOW_SURFACES_CUDA_CAPTURE_H_
#define ASHLAR_HOLLOW_SURFACES_CUDA_CAPTURE_H_

#include <cstddef>
#include <cstdint>

#include "hollow/books/error.h"
#include "hollow/launch/process.h"

namespace ashlar::hollow {

Error BeginCapture(Process& process, void* stream, int mode);
// Into a graph of the program's, after these nodes of it.
Error BeginCaptureInto(Process& process, void* stream, int mode, void* graph, Node* const* after, std::size_t count);
Error EndCapture(Process& process, void* stream, void** graph);

// What a capture of the stream is in; all but the status may be nullptr, and are written only where one is under way.
struct CaptureOut {
  int* status = nullptr;  // 0: none, 1: under way, 2: invalid
  unsigned long long* id = nullptr;
  void** graph = nullptr;
  Node* const** after = nullptr;  // what the next work comes after: valid until the stream is given more
  const void** edges = nullptr;   // cudaGraphEdgeData of each: plain
  std::size_t* count = nullptr;
};
Error ReadCapture(Process& process, void* stream, const CaptureOut& out);
// cudaStreamUpdateCaptureDependenciesFlags: 0 adds the nodes to those that the next work comes after, 1 replaces them.
Error SetCaptureAfter(Process& process, void* stream, Node* const* nodes, std::size_t count, unsigned flags);

// The mode of the calling thread and the one that it had (cudaThreadExchangeStreamCaptureMode).
Error ExchangeCaptureMode(int* mode);

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_SURFACES_CUDA_CAPTURE_H_
