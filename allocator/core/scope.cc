#include "allocator/core/scope.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

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
