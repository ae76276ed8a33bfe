// A thread's place in the process: thread caches (thread caches.h) belong to slots, not to threads, so that a thread
// that ends leaves its thread caches to the next one. Slots are never freed. All that a thread remembers lies in its
// slot, so that the library takes one word of thread-local memory: a library that is opened late gets little of it.
//
//   ThreadSlot* slot = SlotOfThread();
//
// Threads: any may call SlotOfThread. A thread keeps its slot until its thread_local objects are gone; what runs later
// still (a destructor of pthread_key_create) gets a slot again.
#ifndef ASHLAR_ALLOCATOR_CORE_THREAD_SLOT_H_
#define ASHLAR_ALLOCATOR_CORE_THREAD_SLOT_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "allocator/trace/event.h"
#include "ashlar/scope.h"  // IWYU pragma: export

namespace ashlar::core {

struct ThreadCache;

// Where a thread remembers its thread caches: one for each allocator that it uses, found by the allocator's number.
struct alignas(32) ThreadCacheOfAllocator {  // a power of 2, so that one is found by a shift
  std::uint64_t allocator = 0;               // 0: nobody's
  ThreadCache* cache = nullptr;
  ThreadCache* first =
      nullptr;  // where it looks first: its own, or the common one while that has what the thread asks for
};
using ThreadCachesOfThread = std::array<ThreadCacheOfAllocator, 16>;

// What recorders made of a thread's scopes (scope.h), a place for each, which is nobody's again after each change of
// them.
struct StackOfRecorder {
  std::uint64_t recorder = 0;  // its number; 0: nobody's
  trace::StackId stack = trace::kNoStack;
};
struct ScopeStacks {
  bool is_open = false;  // a scope is open at all
  std::array<StackOfRecorder, 4> places{};

  StackOfRecorder& PlaceOf(std::uint64_t recorder) { return places[recorder % places.size()]; }
};

// What may be read of a thread without a slot, too.
struct ThreadSlotTable {
  ThreadCachesOfThread caches{};
  ScopeStacks scope_stacks{};
};
struct ThreadSlot : ThreadSlotTable {
  std::vector<std::string> scopes;  // that are open, outermost first
};

constinit inline ThreadSlotTable no_thread_slot{};  // never written

// The calling thread's; no_thread_slot until it needs one. One word, which a shared library that was opened late reads
// without a call where there is room for it from the start: a call for each request costs more than the lock.
#if defined(__x86_64__)
[[gnu::tls_model("initial-exec")]]
#endif
constinit inline thread_local ThreadSlotTable* table_of_thread = &no_thread_slot;

// The calling thread's, which has one from now on.
ThreadSlot* SlotOfThread();

// Around a fork: no slot is given or returned meanwhile, so that the child's copy of the free ones is whole.
void LockSlots();
void UnlockSlots();

// The scopes of a program (ashlar/scope.h), as recorders see them.

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

#endif  // ASHLAR_ALLOCATOR_CORE_THREAD_SLOT_H_
