// Types of private pools: how requests come to one, and what it does (Allocator::BeginPool, CreatePool).
#ifndef ASHLAR_POOL_ROUTES_H_
#define ASHLAR_POOL_ROUTES_H_

#include <cstdint>
#include <functional>

#include "ashlar/units.h"

namespace ashlar {

// Whether the requests of a stream are routed; called in the requesting thread.
using StreamFilter = std::function<bool(Stream)>;

enum class RouteKind : std::uint8_t {
  kPlain,    // requests go to the pool, that is all
  kCapture,  // and a graph is being captured: nothing may wait
};

// What PyTorch's MemPool offers; see docs/internals/policy.md.
struct PoolTraits {
  bool use_on_oom = false;
  bool no_split = false;
};

}  // namespace ashlar

#endif  // ASHLAR_POOL_ROUTES_H_
