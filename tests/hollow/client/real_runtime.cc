// A stand-in for NVIDIA's libcudart.so.13, whose names carry a version as the real one's do: what a program links.
// Every function answers kOfTheRealLibrary, so that a call which is not taken over is seen.
#define ASHLAR_REFUSED(name, status) \
  extern "C" __attribute__((visibility("default"), weak)) int name() { return 4242; }

#include "hollow/api/names/driver.inc"
#include "hollow/api/names/nvml.inc"
#include "hollow/api/names/runtime.inc"
