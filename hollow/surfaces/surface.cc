#include "hollow/surfaces/surface.h"

#include <atomic>

#include "hollow/launch/made_up.h"
#include "hollow/launch/process.h"
#include "hollow/surfaces/cuda_streams.h"
#include "hollow/surfaces/driver_call.h"

namespace ashlar::hollow {

bool IsInitialized() { return TheProcess().is_initialized.load(std::memory_order_relaxed); }

void CountRefused(const char* name) { TheProcess().tally.AddRefused(name); }

void CountLaunch(void* stream) { (void)static_cast<int>(GiveKernel(stream)); }

void ReadMadeUp(void* host, std::uint64_t bytes) {
  WriteMadeUp(host, bytes);
  CountMadeUp(bytes);
}

}  // namespace ashlar::hollow
