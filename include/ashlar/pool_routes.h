// Types of private pools: how requests come to one, what it does, and where its memory comes from
// (Allocator::BeginPool, CreatePool, SetPoolMemory).
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

// Where the segments of a pool come from, in place of the device. Called under the allocator's lock, by any thread: it
// must not use the allocator. It ends with the pool, when all its memory has gone back.
class PoolMemory {
 public:
  virtual ~PoolMemory() = default;
  // At least so many bytes; 0: there are none. What it gives is nobody else's, as the device's memory.
  virtual std::uint64_t Allocate(std::uint64_t size_bytes) = 0;
  virtual void Free(std::uint64_t address) = 0;
};

}  // namespace ashlar

#endif  // ASHLAR_POOL_ROUTES_H_
