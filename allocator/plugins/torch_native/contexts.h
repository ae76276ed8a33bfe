// What PyTorch puts on the entries of a history besides what the allocator did: call stacks, and texts of the program.
//
//   const GatheredScope scope(history.Gather(RecordContext::STATE));   // before the allocator's lock is taken
//   ashlar_allocate(...);                                              // its events find CurrentContext()
//
// PyTorch's function that gathers a stack may wait for the interpreter's lock, which a thread within the allocator
// could wait for too: so it runs before the call, and events find the stack with their thread.
//
// Threads: everything here is the calling thread's own.
#ifndef ASHLAR_ALLOCATOR_PLUGINS_TORCH_NATIVE_CONTEXTS_H_
#define ASHLAR_ALLOCATOR_PLUGINS_TORCH_NATIVE_CONTEXTS_H_

#include <c10/cuda/CUDACachingAllocator.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ashlar::torch {

using Context = std::shared_ptr<c10::GatheredContext>;

struct ThreadTexts {
  Context context;                            // of the call that is under way
  std::vector<std::string> compile_contexts;  // the innermost last
  std::string user_metadata;

  // Memory is freed at the end of a thread too, when its own variables are gone: what is left then has nothing.
  static ThreadTexts& Mine() {
    static thread_local bool is_gone = false;
    struct Owned {
      ThreadTexts texts;
      ~Owned() { is_gone = true; }
    };
    static thread_local Owned mine;
    static ThreadTexts& nothing = *new ThreadTexts;
    return is_gone ? nothing : mine.texts;
  }
};

class GatheredScope {
 public:
  explicit GatheredScope(Context context) : is_set_(context != nullptr) {
    if (is_set_) before_ = std::exchange(ThreadTexts::Mine().context, std::move(context));
  }
  ~GatheredScope() {
    if (is_set_) ThreadTexts::Mine().context = std::move(before_);
  }
  GatheredScope(const GatheredScope&) = delete;
  GatheredScope& operator=(const GatheredScope&) = delete;

 private:
  const bool is_set_;
  Context before_;
};

}  // namespace ashlar::torch

#endif  // ASHLAR_ALLOCATOR_PLUGINS_TORCH_NATIVE_CONTEXTS_H_
