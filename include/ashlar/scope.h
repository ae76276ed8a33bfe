// A scope names a part of a program, so that a recording can say which part asked for what:
//
//   void Model::Forward(const Tensor& x) {
//     ASHLAR_SCOPE("forward");
//     ...
//   }
//
// A recorder (recorder.h) marks where a scope begins and ends. An allocation on the same thread has the open scopes as
// its call stack, innermost first. Scopes nest; each thread has its own. While nothing records, a scope costs one load
// and one branch, and a recorder that comes later does not see it.
#ifndef ASHLAR_SCOPE_H_
#define ASHLAR_SCOPE_H_

#include "absl/strings/string_view.h"
#include "ashlar/export.h"

namespace ashlar {

// Opens and closes the calling thread's innermost scope, where a block of code cannot (NVTX ranges). EndScope without
// an open scope does nothing.
ASHLAR_EXPORT void BeginScope(absl::string_view name);
ASHLAR_EXPORT void EndScope();

class ASHLAR_EXPORT Scope {
 public:
  explicit Scope(absl::string_view name);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  bool is_open_ = false;
};

}  // namespace ashlar

#define ASHLAR_SCOPE_JOIN2(a, b) a##b
#define ASHLAR_SCOPE_JOIN(a, b) ASHLAR_SCOPE_JOIN2(a, b)
#define ASHLAR_SCOPE(name) const ::ashlar::Scope ASHLAR_SCOPE_JOIN(ashlar_scope_, __LINE__)(name)

#endif  // ASHLAR_SCOPE_H_
