// Shared by the functions that stand in for CUDA's: the real call, and its row where the call is the program's own.
//
//   int cudaMalloc(void** pointer, std::size_t bytes) {
//     return Allocate({Name::cudaMalloc, ASHLAR_RETURN}, pointer, [&] { return Asked{bytes}; }, pointer, bytes);
//   }
//
// Thread rule: any thread.
#ifndef ASHLAR_HOLLOW_RECORD_CALLS_H_
#define ASHLAR_HOLLOW_RECORD_CALLS_H_

#include <cstdint>

#include "hollow/record/recorder.h"

namespace ashlar::record {

using interpose::CallReal;

// `asked` is called afterwards, when a pitch is known. A call without a place for the answer only fails.
template <typename Pointer, typename AskedOf, typename... Arguments>
int Allocate(const Caller& caller, Pointer** pointer, AskedOf asked, Arguments... arguments) {
  const OwnCall own;
  const int result = CallReal(caller.name, arguments...);
  if (!own.is_recorded() || pointer == nullptr) return result;
  if (result == 0) {
    TellAllocation(caller, asked(), NumberOf(*pointer));
  } else {
    TellFailure(caller, asked(), result);
  }
  return result;
}

// The driver or the runtime has shut down: it gave everything back itself.
constexpr bool IsShutDown(int result) { return result == 4; }

template <typename... Arguments>
int Free(const Caller& caller, void* pointer, Arguments... arguments) {
  const OwnCall own;
  const bool is_recorded = pointer != nullptr && own.is_recorded();
  if (is_recorded) TellFree(caller, pointer);
  const int result = CallReal(caller.name, arguments...);
  if (is_recorded && result != 0 && !IsShutDown(result)) TellKept(pointer, result);
  return result;
}

}  // namespace ashlar::record

#endif  // ASHLAR_HOLLOW_RECORD_CALLS_H_
