#include "allocator/core/seat.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

namespace ashlar::core {
namespace {

void ReturnSeat(void* seat);

// The seats of threads that have ended. Never destroyed: threads may outlive static destruction.
struct FreeSeats {
  FreeSeats() : has_key(pthread_key_create(&key, &ReturnSeat) == 0) {}

  std::mutex mutex;
  std::vector<Seat*> seats;
  pthread_key_t key{};  // its destructor runs when a thread's thread_local objects are gone
  bool has_key;         // false: seats of threads that end are lost
};
FreeSeats& TheFreeSeats() {
  static FreeSeats& seats = *new FreeSeats;
  return seats;
}

// A library that is closed must not be called when a thread ends.
struct KeyEnd {
  ~KeyEnd() {
    FreeSeats& free = TheFreeSeats();
    const std::lock_guard<std::mutex> lock(free.mutex);
    if (std::exchange(free.has_key, false)) pthread_key_delete(free.key);
  }
};
const KeyEnd key_end;

void ReturnSeat(void* seat) {
  table_of_thread = &no_seat;
  *static_cast<Seat*>(seat) = Seat{};  // its desks are the next one's, who finds them anew
  FreeSeats& free = TheFreeSeats();
  const std::lock_guard<std::mutex> lock(free.mutex);
  free.seats.push_back(static_cast<Seat*>(seat));
}

void TakeSeat() {
  FreeSeats& free = TheFreeSeats();
  const std::lock_guard<std::mutex> lock(free.mutex);
  if (free.seats.empty()) free.seats.push_back(new Seat);
  table_of_thread = free.seats.back();
  free.seats.pop_back();
  if (free.has_key) pthread_setspecific(free.key, table_of_thread);
}

}  // namespace

Seat* SeatOfThread() {
  if (table_of_thread == &no_seat) TakeSeat();
  return static_cast<Seat*>(table_of_thread);
}

void LockSeats() {
  SeatOfThread();  // not while they are locked
  TheFreeSeats().mutex.lock();
}
void UnlockSeats() { TheFreeSeats().mutex.unlock(); }

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
  Seat* const seat = SeatOfThread();
  seat->scope_stacks = {.is_open = !seat->scopes.empty(), .places = {}};
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
  core::SeatOfThread()->scopes.emplace_back(name);
  core::Tell(true, name);
}

void EndScope() {
  std::vector<std::string>& scopes = core::SeatOfThread()->scopes;
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
