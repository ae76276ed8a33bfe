// The scopes of a program (ashlar/scope.h), as recorders see them.
#ifndef ASHLAR_ALLOCATOR_CORE_SCOPE_H_
#define ASHLAR_ALLOCATOR_CORE_SCOPE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "ashlar/scope.h"  // IWYU pragma: export

namespace ashlar::core {

using ashlar::BeginScope;
using ashlar::EndScope;

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

#endif  // ASHLAR_ALLOCATOR_CORE_SCOPE_H_
