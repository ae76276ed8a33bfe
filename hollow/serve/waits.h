// Waiting for devices, and frees that have to wait because something is being captured.
//
// Why a block that cudaFree gave back may go to any stream at once: cudaFree waits until everything that the device was
// given is done. So does ours, by the program's own means, before the block is free. Nothing can be given to the device
// later that uses the block, since the program gave it up.
//
// Thread rule: any thread.
#ifndef ASHLAR_HOLLOW_SERVE_WAITS_H_
#define ASHLAR_HOLLOW_SERVE_WAITS_H_

#include "hollow/serve/driver.h"
#include "hollow/serve/homes.h"

namespace ashlar::serve {

// Until all work of the device is done, and that of devices which may use its memory. CUDA's error.
int WaitForDevice(Door door, const Home& home);

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

#endif  // ASHLAR_HOLLOW_SERVE_WAITS_H_
