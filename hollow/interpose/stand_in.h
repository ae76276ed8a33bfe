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
#ifndef ASHLAR_HOLLOW_INTERPOSE_STAND_IN_H_
#define ASHLAR_HOLLOW_INTERPOSE_STAND_IN_H_

#include <atomic>

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

// Whether a function here stands in for that one.
bool IsStoodIn(const char* symbol);
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

namespace ashlar::interpose {

// A function of CUDA that a library of stand-ins only calls: the real one, found when it is first there, since the
// runtime loads the driver at its first call.
//
//   constinit RealFunction<int(int*)> current_device("cuCtxGetDevice");
//   int device = 0;
//   if (current_device(&device) == 0) ...           // kNotSupported where nobody has it yet
//
// Thread rule: any thread.

template <typename Signature>
class RealFunction;

template <typename... Arguments>
class RealFunction<int(Arguments...)> {
 public:
  explicit constexpr RealFunction(const char* symbol) : symbol_(symbol) {}
  RealFunction(const RealFunction&) = delete;
  RealFunction& operator=(const RealFunction&) = delete;

  int operator()(Arguments... arguments) {
    auto* function = Find();
    return function == nullptr ? kNotSupported : function(arguments...);
  }
  bool is_there() { return Find() != nullptr; }

 private:
  using Function = int(Arguments...);

  Function* Find() {
    Function* function = known_.load(std::memory_order_acquire);
    if (function != nullptr) [[likely]]
      return function;
    function = reinterpret_cast<Function*>(FindReal(symbol_));
    known_.store(function, std::memory_order_release);
    return function;
  }

  const char* const symbol_;
  std::atomic<Function*> known_ = nullptr;
};

// Whether a function that stands in was called by the program itself, and not from within another one: the runtime
// calls the driver, and a library of ours calls both.
//
//   const OuterCall call;
//   if (!call.is_outermost()) return CallReal(...);
//
// Thread rule: each thread counts for itself.

// How many such functions the thread is in.
extern thread_local int t_depth;

class OuterCall {
 public:
  OuterCall() : is_outermost_(t_depth++ == 0) {}
  ~OuterCall() { --t_depth; }
  OuterCall(const OuterCall&) = delete;
  OuterCall& operator=(const OuterCall&) = delete;

  bool is_outermost() const { return is_outermost_; }

 private:
  const bool is_outermost_;
};

// Whether PyTorch is in this process. It has an allocator and a history of its own, and is left to them.
//
//   static TorchLook look;
//   if (look.HasTorch()) ...          // asked again and again: it may come at any time
//
// Thread rule: any thread. Cheap while no library is loaded.
class TorchLook {
 public:
  bool HasTorch();

 private:
  std::atomic<unsigned long long> loaded_ = 0;  // libraries that were loaded at the last look
  std::atomic<bool> has_torch_ = false;
};

}  // namespace ashlar::interpose

#endif  // ASHLAR_HOLLOW_INTERPOSE_STAND_IN_H_
