#include "hollow/surfaces/surface.h"

#include "hollow/launch/made_up.h"
#include "hollow/launch/process.h"
#include "hollow/surfaces/cuda_streams.h"

namespace ashlar::hollow {

void CountRefused(const char* name) { TheProcess().tally.AddRefused(name); }

void CountLaunch(void* stream) { (void)static_cast<int>(GiveKernel(stream)); }

void ReadMadeUp(void* host, std::uint64_t bytes) {
  WriteMadeUp(host, bytes);
  CountMadeUp(bytes);
}

}  // namespace ashlar::hollow
