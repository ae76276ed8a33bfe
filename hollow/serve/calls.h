// Shared by the functions that stand in for CUDA's, which only translate.
//
//   int cudaMalloc(void** pointer, std::size_t bytes) {
//     return Allocate(ProgramsCall(ASHLAR_RETURN), Api::kRuntime, Name::cudaMalloc, pointer, bytes);
//   }
#ifndef ASHLAR_HOLLOW_SERVE_CALLS_H_
#define ASHLAR_HOLLOW_SERVE_CALLS_H_

#include <cstddef>

#include "hollow/interpose/stand_in.h"
#include "hollow/serve/library.h"
#include "hollow/serve/requests.h"
#include "hollow/serve/streams.h"

namespace ashlar::serve {

using interpose::CallReal;
using interpose::Name;

// A call that the program made: not the runtime, nor a library of ours, whose calls are for the driver.
class ProgramsCall {
 public:
  explicit ProgramsCall(const void* caller)
      : caller_(caller), is_programs_(call_.is_outermost() && !IsOfAshlar(caller)) {}
  explicit operator bool() const { return is_programs_; }
  const void* caller() const { return caller_; }

 private:
  const interpose::OuterCall call_;
  const void* const caller_;
  const bool is_programs_;
};

// An address that no allocation begins at, of the real functions or of ours: they answer it with their own error.
inline void* Nowhere(void* pointer) { return static_cast<char*>(pointer) + 1; }

template <typename... Arguments>
int FinishFree(const Freed& freed, Name name, void* pointer, Arguments... arguments) {
  if (freed.kind == Freed::Kind::kDone) return freed.result;
  return CallReal(name, freed.kind == Freed::Kind::kInvalid ? Nowhere(pointer) : pointer, arguments...);
}

inline int Allocate(const ProgramsCall& call, Api api, Name name, void** pointer, std::size_t bytes) {
  if (call && ServeAllocation(api, bytes, pointer, call.caller())) return 0;
  return CallReal(name, pointer, bytes);
}

inline int AllocateOnStream(const ProgramsCall& call, Api api, Name name, bool is_per_thread, void** pointer,
                            std::size_t bytes, void* stream) {
  if (call && ServeStreamAllocation(api, bytes, Named(stream, is_per_thread), pointer)) return 0;
  return CallReal(name, pointer, bytes, stream);
}

inline int Free(const ProgramsCall& call, Api api, Name name, void* pointer) {
  return FinishFree(call ? ServeFree(api, pointer) : Freed{}, name, pointer);
}

inline int FreeOnStream(const ProgramsCall& call, Name name, bool is_per_thread, void* pointer, void* stream) {
  const Freed freed = call ? ServeStreamFree(pointer, Named(stream, is_per_thread)) : Freed{};
  return FinishFree(freed, name, pointer, stream);
}

inline int MemoryInfo(const ProgramsCall& call, Name name, std::size_t* free_bytes, std::size_t* total_bytes) {
  const int result = CallReal(name, free_bytes, total_bytes);
  if (call && result == 0 && free_bytes != nullptr) *free_bytes += CachedBytes();
  return result;
}

template <typename... Arguments>
int BeginCaptureOf(const ProgramsCall& call, Name name, bool is_per_thread, void* stream, Arguments... arguments) {
  const int result = CallReal(name, stream, arguments...);
  if (call && result == 0) BeginCapture(Named(stream, is_per_thread));
  return result;
}

inline int EndCaptureOf(const ProgramsCall& call, Name name, bool is_per_thread, void* stream, void* graph) {
  const int result = CallReal(name, stream, graph);
  if (call) EndCapture(Named(stream, is_per_thread));
  return result;
}

inline int DestroyStream(const ProgramsCall& call, Name name, void* stream) {
  if (call) RetireStream(stream);
  return CallReal(name, stream);
}

template <typename... Arguments>
int UsePools(const ProgramsCall& call, Name name, Arguments... arguments) {
  if (call) LeaveStreamsToPools();
  return CallReal(name, arguments...);
}

// Of memory that lies in a block of ours a handle would show its neighbours to another process.
int ExportHandle(const ProgramsCall& call, Name name, void* handle, void* pointer);

}  // namespace ashlar::serve

#endif  // ASHLAR_HOLLOW_SERVE_CALLS_H_
