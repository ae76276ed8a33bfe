// Private pools: who uses them, and which requests are routed to them.
//
//   Pools pools(ledger);
//   PoolId pool = pools.Create();
//   absl::Status status = pools.Begin(pool, [](Stream stream) { return stream == Stream{7}; }, RouteKind::kPlain);
//   PoolId at = pools.Route({}, Stream{7});                            // pool
//
// It changes the heap's pools and tells the ledger's sink; the device is not called. Thread rule: not thread-safe; the
// allocator's exclusive section guards it.
#ifndef ASHLAR_ALLOCATOR_CORE_POOLS_H_
#define ASHLAR_ALLOCATOR_CORE_POOLS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/base/units.h"
#include "allocator/core/ledger.h"
#include "allocator/policy/block.h"
#include "allocator/trace/fact.h"
#include "ashlar/pool_routes.h"
#include "ashlar/units.h"

namespace ashlar::core {

// Sends requests for the default pool to a private pool: the routes that are open, as CUDA graph captures and scopes of
// a pool open them. Thread rule: not thread-safe; the allocator's exclusive section guards it.
class PoolRoutes {
 public:
  bool empty() const { return routes_.empty(); }
  std::size_t captures() const { return captures_; }

  // False when the pool has a route already; else the filter is taken.
  bool Open(PoolId pool, StreamFilter&& filter, RouteKind kind) {
    if (Find(pool) != routes_.end()) return false;
    routes_.push_back({pool, std::move(filter), kind});
    captures_ += kind == RouteKind::kCapture ? 1 : 0;
    return true;
  }

  // False when it has none; else the filter is given back.
  bool Close(PoolId pool, StreamFilter& filter) {
    const auto it = Find(pool);
    if (it == routes_.end()) return false;
    captures_ -= it->kind == RouteKind::kCapture ? 1 : 0;
    filter = std::move(it->filter);
    routes_.erase(it);
    return true;
  }

  // False where the pool has no route of the other kind.
  bool Change(PoolId pool, RouteKind to) {
    const auto it = Find(pool);
    if (it == routes_.end() || it->kind == to) return false;
    it->kind = to;
    captures_ = to == RouteKind::kCapture ? captures_ + 1 : captures_ - 1;
    return true;
  }

  // From the oldest on: visit(PoolId, RouteKind).
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const OpenRoute& route : routes_) visit(route.pool, route.kind);
  }

  // Where a request goes: the youngest route that accepts its stream.
  PoolId Route(PoolId pool, Stream stream) const {
    if (!pool.IsDefault()) return pool;
    for (auto it = routes_.rbegin(); it != routes_.rend(); ++it) {
      if (it->filter(stream)) return it->pool;
    }
    return pool;
  }

 private:
  struct OpenRoute {
    PoolId pool;
    StreamFilter filter;
    RouteKind kind = RouteKind::kPlain;
  };

  std::vector<OpenRoute>::iterator Find(PoolId pool) {
    return std::find_if(routes_.begin(), routes_.end(), [pool](const OpenRoute& route) { return route.pool == pool; });
  }

  std::vector<OpenRoute> routes_;  // oldest first
  std::size_t captures_ = 0;
};

class Pools {
 public:
  // The ledger outlives this.
  explicit Pools(Ledger& ledger) : ledger_(ledger) {}

  // Made on first use, with one user.
  void Configure(PoolId pool, bool use_on_oom, bool no_split);
  // Names it; made on first use, with one user. FailedPrecondition: a graph is being captured in it, whose memory
  // stays.
  absl::Status SetTag(PoolId pool, absl::string_view tag);
  // Its segments come from there from now on; made on first use, with one user. FailedPrecondition: it has segments, a
  // memory of its own, or a tag.
  absl::Status SetMemory(PoolId pool, std::shared_ptr<PoolMemory> memory);
  // Those that are named: by a tag, which several may have, or by their ids; in the order of their ids, and each once.
  // Nothing is named: all that have segments. InvalidArgument: nothing has that name.
  absl::StatusOr<std::vector<PoolId>> Find(const std::vector<std::string>& tags, const std::vector<PoolId>& ids) const;
  // "pool {0, 7}", with its tag.
  static std::string NameOf(const policy::PoolPair& pair);
  // A new pool with one user, under an id that no pool had before.
  PoolId Create();
  void Retain(PoolId pool);
  void Release(PoolId pool);
  std::uint64_t UseCount(PoolId pool) const;
  // FailedPrecondition where somebody may still reach what is free in the pool.
  absl::Status CheckUnused(PoolId pool) const;

  // FailedPrecondition: the pool has a route already, or has none.
  // The filter is taken only where this succeeds, and given back at the end: what it holds may use the allocator when
  // it ends, so it must not end within a section.
  absl::Status Begin(PoolId pool, StreamFilter&& filter, RouteKind kind);
  absl::Status End(PoolId pool, StreamFilter& filter);
  // The pool's plain route becomes one of a capture, or the other way round. FailedPrecondition: it has no such route.
  absl::Status BeginCapture(PoolId pool) { return ChangeRoute(pool, RouteKind::kCapture); }
  absl::Status EndCapture(PoolId pool) { return ChangeRoute(pool, RouteKind::kPlain); }
  PoolId Route(PoolId pool, Stream stream) const { return routes_.Route(pool, stream); }
  bool HasRoutes() const { return !routes_.empty(); }
  bool IsCapturing() const { return routes_.captures() > 0; }
  bool HasCapture(PoolId pool) const;

  // Routes, users and traits, as the facts that lead there.
  std::vector<trace::AnyFact> Facts() const;

 private:
  absl::Status ChangeRoute(PoolId pool, RouteKind to);
  bool IsTagged(PoolId pool) const;
  std::vector<PoolId> WithSegments() const;
  void AddUser(PoolId pool);
  void NoteUsers(PoolId pool);

  Ledger& ledger_;
  PoolRoutes routes_;
  std::uint64_t last_id_ = 0;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_POOLS_H_
