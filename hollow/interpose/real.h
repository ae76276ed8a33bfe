// A preloaded library that stands in for functions of CUDA, and NVIDIA's (or the hollow device's) own behind each.
// Which functions these are, a library says by its file ASHLAR_STAND_INS (entry_names.inc has the form of its lines).
//
//   int cudaMalloc(void** pointer, std::size_t bytes) { return CallReal(Name::cudaMalloc, pointer, bytes); }
//   ASHLAR_STANDS_IN(cudaMalloc);
//
// Two such libraries stand one above the other, in the order of LD_PRELOAD: what is real for the first is the second's.
// The real one is the next of that name in the order of the linker; where there is none, as of a library that was
// loaded for itself alone, the one that somebody was just handed (dlsym, cuGetProcAddress), else the loaded library's.
// Thread rule: any thread.
#ifndef ASHLAR_HOLLOW_INTERPOSE_REAL_H_
#define ASHLAR_HOLLOW_INTERPOSE_REAL_H_

namespace ashlar::interpose {

enum class Name : int {
#define ASHLAR_NAME(name, driver_name, since, is_per_thread) name,
#include ASHLAR_STAND_INS
#undef ASHLAR_NAME
};

inline constexpr int kNotSupported = 801;  // cudaErrorNotSupported, CUDA_ERROR_NOT_SUPPORTED

const char* TextOf(Name name);

// Null: nobody has it, which is said once.
void* RealOf(Name name);

template <typename... Arguments>
int CallReal(Name name, Arguments... arguments) {
  auto* real = reinterpret_cast<int (*)(Arguments...)>(RealOf(name));
  return real == nullptr ? kNotSupported : real(arguments...);
}

// Any function of CUDA, of the same places.
void* FindReal(const char* symbol);
// Whether this thread is in FindReal: what it asks dlsym for is the real function, and nobody's to stand in for.
bool IsFinding();

// What to give where a program was answered `found` for `symbol`: ours, where `found` is of the library that ours would
// call; else `found`.
void* HandOut(const char* symbol, void* found);
// The same for cuGetProcAddress.
void* HandOutDriver(const char* driver_name, int cuda_version, bool is_per_thread, void* found);

}  // namespace ashlar::interpose

// Where the function that this stands in returns to.
#define ASHLAR_RETURN __builtin_return_address(0)

// Defines a function that stands in for one of CUDA. Its address for HandOut is `ashlar_own_NAME`.
#define ASHLAR_STANDS_IN(name) \
  extern "C" __attribute__((visibility("hidden"), alias(#name))) decltype(name) ashlar_own_##name

#endif  // ASHLAR_HOLLOW_INTERPOSE_REAL_H_
