// What a program asks for, as it is served. docs/guide/run-under.md says why each is right.
//
//   if (call && ServeAllocation(Api::kRuntime, bytes, pointer, caller)) return 0;
//   return CallReal(Name::cudaMalloc, pointer, bytes);
//
// Whatever is not served is the real function's to answer, errors included, so that the program sees CUDA's own.
// Thread rule: any thread; only from a call of the program's own.
#ifndef ASHLAR_HOLLOW_SERVE_REQUESTS_H_
#define ASHLAR_HOLLOW_SERVE_REQUESTS_H_

#include <cstddef>
#include <cstdint>

#include "hollow/serve/driver.h"
#include "hollow/serve/homes.h"

namespace ashlar::serve {

// cudaMalloc and cuMemAlloc: memory that every stream may use at once. False: not served, as where libashlar.so itself
// is the caller.
bool ServeAllocation(Api api, std::size_t bytes, void** out, const void* caller);
// cudaMallocAsync and cuMemAllocAsync: memory for work on `stream`, which Named has given its name.
bool ServeStreamAllocation(Api api, std::size_t bytes, Driver::Stream stream, void** out);

struct Freed {
  enum class Kind {
    kForeign,  // not ours: the real function frees it
    kInvalid,  // in our memory, and no block that is live begins there: the real function must not see the address
    kDone,
  };
  Kind kind = Kind::kForeign;
  int result = 0;  // where it is done
};

// cudaFree and cuMemFree: waits for the device, as they do.
Freed ServeFree(Api api, void* pointer);
// cudaFreeAsync and cuMemFreeAsync: in the order of the stream.
Freed ServeStreamFree(void* pointer, Driver::Stream stream);

// The program manages CUDA's memory pools itself: what it allocates by streams is theirs from now on.
void LeaveStreamsToPools();

// `device` may use the memory of `peer` from now on.
void NotePeer(int device, int peer);

// A live block of ours that holds the address.
struct OwnBlock {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;  // that were asked for
};
bool FindOwnBlock(const void* address, OwnBlock& out);

// Of the current context: bytes that a request can have without the device.
std::uint64_t CachedBytes();

// Before a device is reset, by its ordinal.
void ForgetDevice(int device);

// Waiting for devices, and frees that have to wait because something is being captured.
//
// Why a block that cudaFree gave back may go to any stream at once: cudaFree waits until everything that the device was
// given is done. So does ours, by the program's own means, before the block is free. Nothing can be given to the device
// later that uses the block, since the program gave it up.
//
// Thread rule: any thread.

// Until all work of the device is done, and that of devices which may use its memory. CUDA's error.
int WaitForDevice(Api api, const Home& home);

// `device` may use the memory of `peer`.
void AddPeer(int device, int peer);

// The block is freed when nothing is captured any more.
void FreeAfterCapture(Home& home, void* pointer);
// Does so, where there are any and it may.
void FreeDeferred();

// Around a fork.
void LockDeferred();
void UnlockDeferred();

}  // namespace ashlar::serve

#endif  // ASHLAR_HOLLOW_SERVE_REQUESTS_H_
