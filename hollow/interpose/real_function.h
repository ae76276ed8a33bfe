// A function of CUDA that a library of stand-ins only calls: the real one, found when it is first there, since the
// runtime loads the driver at its first call.
//
//   constinit RealFunction<int(int*)> current_device("cuCtxGetDevice");
//   int device = 0;
//   if (current_device(&device) == 0) ...           // kNotSupported where nobody has it yet
//
// Thread rule: any thread.
#ifndef ASHLAR_HOLLOW_INTERPOSE_REAL_FUNCTION_H_
#define ASHLAR_HOLLOW_INTERPOSE_REAL_FUNCTION_H_

#include <atomic>

#include "hollow/interpose/real.h"

namespace ashlar::interpose {

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

}  // namespace ashlar::interpose

#endif  // ASHLAR_HOLLOW_INTERPOSE_REAL_FUNCTION_H_
