// For which architectures the code of a kernel was compiled. A program that asks a kernel's version takes its answer
// for one of those: CUB refuses any other.
//
//   RegisterDeviceCode(handle, wrapper);          // __cudaRegisterFatBinary
//   RegisterKernel(handle, stub);                 // __cudaRegisterFunction
//   CompiledArchitecture(stub, 89);               // 86: the cubin that a device of 8.9 takes
//
// Layout of the containers: fatbinary_section.h of CUDA 11 to 13 for the wrapper; the entries as cuobjdump lists them.
// Architectures are numbers such as 86 and 120. Thread rule: any thread.
#ifndef ASHLAR_HOLLOW_SURFACES_DEVICE_CODE_H_
#define ASHLAR_HOLLOW_SURFACES_DEVICE_CODE_H_

#include <vector>

namespace ashlar::hollow {

struct CompiledCode {
  int architecture = 0;
  bool is_ptx = false;
};

// What is in a wrapper's container; empty where it is none that we know.
std::vector<CompiledCode> CodeIn(const void* wrapper);
// As CUDA chooses: the newest binary of the device's major version that is not newer than it, else the newest PTX that
// is not, else what is nearest. `device` where there is nothing to choose from.
int ChooseArchitecture(const std::vector<CompiledCode>& code, int device);

void RegisterDeviceCode(const void* handle, const void* wrapper);
void ForgetDeviceCode(const void* handle);
void RegisterKernel(const void* handle, const void* kernel);
// `device` for a kernel that nobody registered.
int CompiledArchitecture(const void* kernel, int device);

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_SURFACES_DEVICE_CODE_H_
