// The scopes of a program (ashlar/scope.h), as recorders see them.
#ifndef ASHLAR_ALLOCATOR_CORE_SCOPE_H_
#define ASHLAR_ALLOCATOR_CORE_SCOPE_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "allocator/core/seat.h"
#include "allocator/trace/event.h"
#include "ashlar/scope.h"  // IWYU pragma: export

namespace ashlar::core {

using ashlar::BeginScope;
using ashlar::EndScope;

// The stack that the recorder has for the scopes of this thread; false: it has none yet.
inline bool StackOfScopes(std::uint64_t recorder, trace::StackId& stack) {
  stack = trace::kNoStack;
  ScopeStacks& stacks = table_of_thread->scope_stacks;
  if (!stacks.is_open) [[likely]]
    return true;
  const StackOfRecorder& place = stacks.PlaceOf(recorder);
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
