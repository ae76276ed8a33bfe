// Shared by the functions that stand in for CUDA's, which only translate.
//
//   int cudaMalloc(void** pointer, std::size_t bytes) {
//     const OuterCall call;
//     if (call.is_outermost() && ServeAllocation(Door::kRuntime, bytes, pointer)) return 0;
//     return CallReal(Name::cudaMalloc, pointer, bytes);
//   }
#ifndef ASHLAR_HOLLOW_SERVE_CALLS_H_
#define ASHLAR_HOLLOW_SERVE_CALLS_H_

#include <cstddef>

#include "hollow/interpose/outer_call.h"
#include "hollow/interpose/real.h"
#include "hollow/serve/requests.h"
#include "hollow/serve/streams.h"

namespace ashlar::serve {

using interpose::CallReal;
using interpose::Name;
using interpose::OuterCall;

// An address that no allocation begins at, of the real functions or of ours: they answer it with their own error.
inline void* Nowhere(void* pointer) { return static_cast<char*>(pointer) + 1; }

template <typename... Arguments>
int FinishFree(const Freed& freed, Name name, void* pointer, Arguments... arguments) {
  if (freed.kind == Freed::Kind::kDone) return freed.result;
  return CallReal(name, freed.kind == Freed::Kind::kInvalid ? Nowhere(pointer) : pointer, arguments...);
}

inline int Allocate(Door door, Name name, void** pointer, std::size_t bytes) {
  const OuterCall call;
  if (call.is_outermost() && ServeAllocation(door, bytes, pointer)) return 0;
  return CallReal(name, pointer, bytes);
}

inline int AllocateOnStream(Name name, bool is_per_thread, void** pointer, std::size_t bytes, void* stream) {
  const OuterCall call;
  if (call.is_outermost() && ServeStreamAllocation(bytes, Named(stream, is_per_thread), pointer)) return 0;
  return CallReal(name, pointer, bytes, stream);
}

inline int Free(Door door, Name name, void* pointer) {
  const OuterCall call;
  return FinishFree(call.is_outermost() ? ServeFree(door, pointer) : Freed{}, name, pointer);
}

inline int FreeOnStream(Name name, bool is_per_thread, void* pointer, void* stream) {
  const OuterCall call;
  const Freed freed = call.is_outermost() ? ServeStreamFree(pointer, Named(stream, is_per_thread)) : Freed{};
  return FinishFree(freed, name, pointer, stream);
}

inline int MemoryInfo(Name name, std::size_t* free_bytes, std::size_t* total_bytes) {
  const OuterCall call;
  const int result = CallReal(name, free_bytes, total_bytes);
  if (call.is_outermost() && result == 0 && free_bytes != nullptr) *free_bytes += CachedBytes();
  return result;
}

template <typename... Arguments>
int BeginCaptureOf(Name name, bool is_per_thread, void* stream, Arguments... arguments) {
  const OuterCall call;
  const int result = CallReal(name, stream, arguments...);
  if (call.is_outermost() && result == 0) BeginCapture(Named(stream, is_per_thread));
  return result;
}

inline int EndCaptureOf(Name name, bool is_per_thread, void* stream, void* graph) {
  const OuterCall call;
  const int result = CallReal(name, stream, graph);
  if (call.is_outermost()) EndCapture(Named(stream, is_per_thread));
  return result;
}

inline int DestroyStream(Name name, void* stream) {
  const OuterCall call;
  if (call.is_outermost()) RetireStream(stream);
  return CallReal(name, stream);
}

template <typename... Arguments>
int UsePools(Name name, Arguments... arguments) {
  const OuterCall call;
  if (call.is_outermost()) LeaveStreamsToPools();
  return CallReal(name, arguments...);
}

// Of memory that lies in a block of ours a handle would show its neighbours to another process.
int ExportHandle(Name name, void* handle, void* pointer);

}  // namespace ashlar::serve

#endif  // ASHLAR_HOLLOW_SERVE_CALLS_H_
