// Sends requests for the default pool to a private pool: the routes that are open, as CUDA graph captures and scopes of
// a pool open them. Thread rule: not thread-safe; the allocator's exclusive section guards it.
#ifndef ASHLAR_ALLOCATOR_CORE_POOL_ROUTES_H_
#define ASHLAR_ALLOCATOR_CORE_POOL_ROUTES_H_

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "ashlar/pool_routes.h"
#include "ashlar/units.h"

namespace ashlar::core {

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

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_POOL_ROUTES_H_
