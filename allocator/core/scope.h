// The scopes of a program (ashlar/scope.h), as recorders see them.
#ifndef ASHLAR_ALLOCATOR_CORE_SCOPE_H_
#define ASHLAR_ALLOCATOR_CORE_SCOPE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "allocator/trace/event.h"
#include "ashlar/scope.h"  // IWYU pragma: export

namespace ashlar::core {

using ashlar::BeginScope;
using ashlar::EndScope;

// The scopes open on this thread, outermost first.
const std::vector<std::string>& ScopesOfThread();

// What recorders made of this thread's scopes, a place for each, which is nobody's again after each change of them.
struct StackOfRecorder {
  std::uint64_t recorder = 0;  // its number; 0: nobody's
  trace::StackId stack = trace::kNoStack;
};
struct ScopeStacks {
  bool is_open = false;  // a scope is open at all
  std::array<StackOfRecorder, 4> places{};

  StackOfRecorder& PlaceOf(std::uint64_t recorder) { return places[recorder % places.size()]; }
};
constinit inline thread_local ScopeStacks scope_stacks{};

// The stack that the recorder has for the scopes of this thread; false: it has none yet.
inline bool StackOfScopes(std::uint64_t recorder, trace::StackId& stack) {
  stack = trace::kNoStack;
  if (!scope_stacks.is_open) [[likely]]
    return true;
  const StackOfRecorder& place = scope_stacks.PlaceOf(recorder);
  stack = place.stack;
  return place.recorder == recorder;
}

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

#endif  // ASHLAR_ALLOCATOR_CORE_SCOPE_H_
