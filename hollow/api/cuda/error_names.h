// The names and texts of CUDA's errors.
#ifndef ASHLAR_HOLLOW_API_CUDA_ERROR_NAMES_H_
#define ASHLAR_HOLLOW_API_CUDA_ERROR_NAMES_H_

namespace ashlar::hollow {

const char* RuntimeErrorName(int error);  // "cudaErrorMemoryAllocation"; "unrecognized error code" where there is none
const char* DriverErrorName(int error);   // "CUDA_ERROR_OUT_OF_MEMORY"; nullptr where there is none
const char* ErrorText(int error);         // "out of memory"

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_API_CUDA_ERROR_NAMES_H_
