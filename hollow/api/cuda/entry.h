// Finds a function of the driver by its plain name and the version of CUDA that the caller was compiled for.
#ifndef ASHLAR_HOLLOW_API_CUDA_ENTRY_H_
#define ASHLAR_HOLLOW_API_CUDA_ENTRY_H_

namespace ashlar::hollow {

// cuGetProcAddress: 12040 gives cuCtxCreate_v3, 12050 cuCtxCreate_v4. nullptr where no such name is public.
void* DriverFunction(const char* name, int cuda_version);

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_API_CUDA_ENTRY_H_
