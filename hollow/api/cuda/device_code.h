// For which architectures the code of a kernel was compiled. A program that asks a kernel's version takes its answer
// for one of those: CUB refuses any other.
//
//   RegisterDeviceCode(handle, wrapper);          // __cudaRegisterFatBinary
//   RegisterKernel(handle, stub);                 // __cudaRegisterFunction
//   CompiledArchitecture(stub, 89);               // 86: the cubin that a device of 8.9 takes
//
// Layout of the containers: fatbinary_section.h of CUDA 11 to 13 for the wrapper; the entries as cuobjdump lists them.
// Architectures are numbers such as 86 and 120. Thread rule: any thread.
#ifndef ASHLAR_HOLLOW_API_CUDA_DEVICE_CODE_H_
#define ASHLAR_HOLLOW_API_CUDA_DEVICE_CODE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hollow/abi/cuda_types.h"
#include "hollow/process/settings.h"

namespace ashlar::hollow {

struct CompiledCode {
  int architecture = 0;
  bool is_ptx = false;
  bool is_compressed = false;
  const char* bytes = nullptr;
  std::uint64_t size_bytes = 0;
};

// What is in a container, or in that of a wrapper; empty where it is none that we know.
std::vector<CompiledCode> CodeIn(const void* code);
// As CUDA chooses: the newest binary of the device's major version that is not newer than it, else the newest PTX that
// is not, else what is nearest. `device` where there is nothing to choose from.
const CompiledCode* ChooseCode(const std::vector<CompiledCode>& code, int device);  // nullptr: there is none
int ChooseArchitecture(const std::vector<CompiledCode>& code, int device);

void RegisterDeviceCode(const void* handle, const void* wrapper);
const void* RegisteredCode(const void* handle);  // the wrapper; nullptr where the handle is none
void ForgetDeviceCode(const void* handle);
void RegisterKernel(const void* handle, const void* kernel);
// `device` for a kernel that nobody registered.
int CompiledArchitecture(const void* kernel, int device);

// Answers questions about kernels that nobody compiled for this device, with attributes and occupancy that let every
// launch pass.

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

#endif  // ASHLAR_HOLLOW_API_CUDA_DEVICE_CODE_H_
