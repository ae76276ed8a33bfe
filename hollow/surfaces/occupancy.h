// Answers questions about kernels that nobody compiled for this device, with attributes and occupancy that let every
// launch pass.
#ifndef ASHLAR_HOLLOW_SURFACES_OCCUPANCY_H_
#define ASHLAR_HOLLOW_SURFACES_OCCUPANCY_H_

#include <cstdint>
#include <string>

#include "hollow/abi/cuda_types.h"
#include "hollow/launch/settings.h"

namespace ashlar::hollow {

// Of any kernel: 1,024 threads, 32 registers a thread, no static shared memory, code of the architecture
// that the device takes of those it was compiled for.
abi::FuncAttributes FunctionAttributes(const Settings& settings, const void* function);
void SetMaxDynamicShared(const void* function, int bytes);
// Blocks that fit on a multiprocessor by their threads, their shared memory and the most that it takes; at least 1.
int BlocksPerMultiprocessor(const Settings& settings, int threads, std::uint64_t shared_bytes);
// The same handle for the same name.
void* NamedKernel(const std::string& name);
const char* NameOfKernel(const void* kernel);  // nullptr where it is none of those

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_SURFACES_OCCUPANCY_H_
