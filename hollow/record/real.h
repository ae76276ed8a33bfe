// The functions that the recorder stands in for, and NVIDIA's (or the hollow device's) own behind each.
//
//   auto* real = reinterpret_cast<int (*)(void**, std::size_t)>(RealOf(Name::cudaMalloc));
//
// The real one is the next of that name in the order of the linker; where there is none, as of a library that was
// loaded for itself alone, the one that somebody was just handed (dlsym, cuGetProcAddress), else the loaded library's.
// Thread rule: any thread.
#ifndef ASHLAR_HOLLOW_RECORD_REAL_H_
#define ASHLAR_HOLLOW_RECORD_REAL_H_

namespace ashlar::record {

enum class Name : int {
#define ASHLAR_NAME(name, driver_name, since, is_per_thread) name,
#include "hollow/record/recorded_names.inc"
#undef ASHLAR_NAME
};

inline constexpr int kNotSupported = 801;  // cudaErrorNotSupported, CUDA_ERROR_NOT_SUPPORTED

const char* TextOf(Name name);

// Null: nobody has it, which is said once.
void* RealOf(Name name);

// Any function of CUDA, of the same places.
void* FindReal(const char* symbol);

// What to give where a program was answered `found` for `symbol`: ours, where `found` is of the library that ours would
// call; else `found`.
void* HandOut(const char* symbol, void* found);
// The same for cuGetProcAddress.
void* HandOutDriver(const char* driver_name, int cuda_version, bool is_per_thread, void* found);

}  // namespace ashlar::record

// Defines a function that stands in for one of CUDA. Its address for HandOut is `ashlar_own_NAME`.
#define ASHLAR_STANDS_IN(name) \
  extern "C" __attribute__((visibility("hidden"), alias(#name))) decltype(name) ashlar_own_##name

#endif  // ASHLAR_HOLLOW_RECORD_REAL_H_
