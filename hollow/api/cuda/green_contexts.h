// Green contexts, parts of a device's multiprocessors with streams of their own: shared by the runtime's and the
// driver's calls. Nothing runs, so that a part is a number of multiprocessors; its memory is the primary context's.
//
//   abi::DevResource all, parts[4];
//   unsigned count = 4;
//   GetDeviceResource(process, 0, 1, &all);
//   SplitByCount(process, parts, &count, &all, nullptr, 0, 8);       // 4 parts of 8, of an H100's 132
//   void *description, *green, *stream;
//   DescribeResources(process, &description, parts, 1);
//   MakeGreenContext(process, &green, description, 0);
//   MakeGreenStream(process, &stream, green, 1, 0);
//
// How many there are at least, and multiples of what, is the table of cuda.h ("Green Contexts"). Not public: which
// parts a device's uneven clusters leave (here all are even), and what a green context takes of memory (here nothing).
// A stream outlives its green context, where CUDA refuses its calls.
// With the process's lock held, but where a line says otherwise. Source: cuda.h of CUDA 13.0 and 13.5.
#ifndef ASHLAR_HOLLOW_API_CUDA_GREEN_CONTEXTS_H_
#define ASHLAR_HOLLOW_API_CUDA_GREEN_CONTEXTS_H_

#include <cstdint>
#include <vector>

#include "hollow/abi/cuda_types.h"
#include "hollow/model/error.h"
#include "hollow/process/process.h"

namespace ashlar::hollow {

struct GreenContext {
  int device = 0;
  unsigned sm_count = 0;
  std::uint64_t id = 0;
  bool is_whole = false;  // the device's own context, by another handle (cudaDeviceGetExecutionCtx)
  std::vector<void*> streams;
  void* meeting = nullptr;  // a stream of ours, on which events of the green context are recorded
};

// nullptr where the handle is none, or destroyed.
GreenContext* GreenContextOf(const void* handle);
bool IsWholeDevice(const void* handle);
// Of a stream: nullptr where it is of none that is there.
void* GreenHandleOf(const StreamModel& stream);

Error GetDeviceResource(const Process& process, int device, int kind, abi::DevResource* out);
Error GetGreenResource(const Process& process, const void* green, int kind, abi::DevResource* out);
Error GetStreamResource(Process& process, const void* stream, int kind, abi::DevResource* out);
Error SplitByCount(const Process& process, abi::DevResource* parts, unsigned* count, const abi::DevResource* input,
                   abi::DevResource* remaining, unsigned flags, unsigned least);
Error DescribeResources(void** description, const abi::DevResource* resources, unsigned count);
Error MakeGreenContext(Process& process, void** green, const void* description, int device);
Error DestroyGreenContext(Process& process, const void* green);
Error GetWholeDevice(Process& process, void** green, int device);
// Of a green context it waits for no default stream, whatever the flags say.
Error MakeGreenStream(Process& process, void** stream, const void* green, unsigned flags, int priority);

// Without the lock. An event that is done when the work so far of all streams of the green context is; the event that
// their later work waits for; all of their work.
Error RecordOfGreen(const void* green, void* event);
Error WaitOfGreen(const void* green, void* event);
Error SynchronizeGreen(const void* green);

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_API_CUDA_GREEN_CONTEXTS_H_
