#include "allocator/core/thread_slot.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

namespace ashlar::core {
namespace {

void ReturnSlot(void* slot);

// The slots of threads that have ended. Never destroyed: threads may outlive static destruction.
struct FreeThreadSlots {
  FreeThreadSlots() : has_key(pthread_key_create(&key, &ReturnSlot) == 0) {}

  std::mutex mutex;
  std::vector<ThreadSlot*> slots;
  pthread_key_t key{};  // its destructor runs when a thread's thread_local objects are gone
  bool has_key;         // false: slots of threads that end are lost
};
FreeThreadSlots& TheFreeThreadSlots() {
  static FreeThreadSlots& slots = *new FreeThreadSlots;
  return slots;
}

// A library that is closed must not be called when a thread ends.
struct KeyEnd {
  ~KeyEnd() {
    FreeThreadSlots& free = TheFreeThreadSlots();
    const std::lock_guard<std::mutex> lock(free.mutex);
    if (std::exchange(free.has_key, false)) pthread_key_delete(free.key);
  }
};
const KeyEnd key_end;

void ReturnSlot(void* slot) {
  table_of_thread = &no_thread_slot;
  *static_cast<ThreadSlot*>(slot) = ThreadSlot{};  // its thread caches are the next one's, who finds them anew
  FreeThreadSlots& free = TheFreeThreadSlots();
  const std::lock_guard<std::mutex> lock(free.mutex);
  free.slots.push_back(static_cast<ThreadSlot*>(slot));
}

void TakeSlot() {
  FreeThreadSlots& free = TheFreeThreadSlots();
  const std::lock_guard<std::mutex> lock(free.mutex);
  if (free.slots.empty()) free.slots.push_back(new ThreadSlot);
  table_of_thread = free.slots.back();
  free.slots.pop_back();
  if (free.has_key) pthread_setspecific(free.key, table_of_thread);
}

}  // namespace

ThreadSlot* SlotOfThread() {
  if (table_of_thread == &no_thread_slot) TakeSlot();
  return static_cast<ThreadSlot*>(table_of_thread);
}

void LockSlots() {
  SlotOfThread();  // not while they are locked
  TheFreeThreadSlots().mutex.lock();
}
void UnlockSlots() { TheFreeThreadSlots().mutex.unlock(); }

}  // namespace ashlar::core

namespace ashlar::core {
namespace {

std::atomic<int> listener_count{0};

struct Listeners {
  std::mutex mutex;
  std::vector<ScopeListener*> all;
};

// Never destroyed: threads may outlive main().
Listeners& TheListeners() {
  static auto* const listeners = new Listeners();
  return *listeners;
}

void Tell(bool is_begin, absl::string_view name) {
  ThreadSlot* const slot = SlotOfThread();
  slot->scope_stacks = {.is_open = !slot->scopes.empty(), .places = {}};
  Listeners& listeners = TheListeners();
  const std::lock_guard<std::mutex> lock(listeners.mutex);
  for (ScopeListener* listener : listeners.all) listener->OnScope(is_begin, name);
}

}  // namespace

void AddScopeListener(ScopeListener* listener) {
  Listeners& listeners = TheListeners();
  const std::lock_guard<std::mutex> lock(listeners.mutex);
  listeners.all.push_back(listener);
  listener_count.fetch_add(1, std::memory_order_relaxed);
}

void RemoveScopeListener(ScopeListener* listener) {
  Listeners& listeners = TheListeners();
  const std::lock_guard<std::mutex> lock(listeners.mutex);
  const auto it = std::find(listeners.all.begin(), listeners.all.end(), listener);
  if (it == listeners.all.end()) return;
  listeners.all.erase(it);
  listener_count.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace ashlar::core

namespace ashlar {

void BeginScope(absl::string_view name) {
  core::SlotOfThread()->scopes.emplace_back(name);
  core::Tell(true, name);
}

void EndScope() {
  std::vector<std::string>& scopes = core::SlotOfThread()->scopes;
  if (scopes.empty()) return;
  const std::string name = std::move(scopes.back());
  scopes.pop_back();
  core::Tell(false, name);
}

Scope::Scope(absl::string_view name) {
  if (core::listener_count.load(std::memory_order_relaxed) == 0) return;
  BeginScope(name);
  is_open_ = true;
}

Scope::~Scope() {
  if (is_open_) EndScope();
}

}  // namespace ashlar
