// Where memory is served from: the process's allocator of a device, with the device's primary context. A context that a
// program made for itself has none: its memory is the driver's.
//
//   Home* home = CurrentHome(Opening::kIfNeeded);
//   if (home == nullptr) ...                                // not served: the request goes to the driver
//   Home* owner = HomeHolding(address);                     // whose is this address?
//
// A home is lost when its device is reset, and in the child of a fork: nothing is asked of its allocator any more.
// Thread rule: any thread. Homes are never destroyed: programs free until their very end.
#ifndef ASHLAR_HOLLOW_SERVE_HOMES_H_
#define ASHLAR_HOLLOW_SERVE_HOMES_H_

#include <atomic>
#include <cstdint>

#include "ashlar.h"
#include "hollow/serve/driver.h"
#include "hollow/serve/library.h"

namespace ashlar::serve {

struct Home {
  Home(int of_device, ashlar_allocator* with_allocator, Driver::Context with_context)
      : device(of_device), allocator(with_allocator), context(with_context) {}

  const int device;
  ashlar_allocator* const allocator;
  const Driver::Context context;
  std::atomic<bool> is_lost = false;
  std::atomic<bool> is_of_parent = false;  // it was open when this process was forked
};

inline constexpr int kMostDevices = 64;

enum class Opening { kIfNeeded, kNever };

// Of the context that is current in this thread; null where none is, or it has no home.
Home* CurrentHome(Opening opening);
// Of a stream that the program made, or of the current context for a default stream.
Home* HomeOfStream(Driver::Stream stream, Opening opening);
// That is open and not lost; null else.
Home* OpenHome(int device);
// That is open, or was until its device was reset; null else. Only its statistics may be asked for.
Home* HomeInModel(int device);
// In whose memory the address lies, live or not; null where it is none of ours.
Home* HomeHolding(const void* address);

// The device was reset, or all of them are unusable after a fork.
void LoseHome(int device);
void LoseAllHomes();

}  // namespace ashlar::serve

#endif  // ASHLAR_HOLLOW_SERVE_HOMES_H_
