// Names for parts of a program, so that a recording can say which part asked for what:
//
//   void Model::Forward(const Tensor& x) {
//     ASHLAR_SCOPE("forward");
//     ...
//   }
//
// A recorder (recorder.h) marks where a scope begins and ends, and what is allocated meanwhile on the same thread has
// the open scopes as its call stack, innermost first. Scopes nest; each thread has its own. While nothing records, a
// scope costs one load and one branch; one that was opened then is not seen by a recorder that comes later.
#ifndef ASHLAR_ALLOCATOR_CORE_SCOPE_H_
#define ASHLAR_ALLOCATOR_CORE_SCOPE_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace ashlar::core {

// Opens and closes the calling thread's innermost scope, where a block of code cannot (NVTX ranges). EndScope without
// an open scope does nothing.
void BeginScope(absl::string_view name);
void EndScope();

class Scope {
 public:
  explicit Scope(absl::string_view name);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  bool is_open_ = false;
};

// --- for recorders ---

// The scopes open on this thread, outermost first.
const std::vector<std::string>& ScopesOfThread();

// A place for what one recorder made of this thread's scopes; it is nobody's again after each change of them.
struct ScopesCache {
  std::uint64_t owner = 0;  // 0: nobody's
  std::uint32_t stack = 0;
};
extern constinit thread_local ScopesCache scopes_cache;

// Told of each scope on the thread that opens or closes it, one at a time. It must not open scopes itself.
class ScopeListener {
 public:
  virtual ~ScopeListener() = default;
  virtual void OnScope(bool is_begin, absl::string_view name) = 0;
};
void AddScopeListener(ScopeListener* listener);
// When this returns, no call to it is under way.
void RemoveScopeListener(ScopeListener* listener);

}  // namespace ashlar::core

#define ASHLAR_SCOPE_JOIN2(a, b) a##b
#define ASHLAR_SCOPE_JOIN(a, b) ASHLAR_SCOPE_JOIN2(a, b)
#define ASHLAR_SCOPE(name) const ::ashlar::core::Scope ASHLAR_SCOPE_JOIN(ashlar_scope_, __LINE__)(name)

#endif  // ASHLAR_ALLOCATOR_CORE_SCOPE_H_
