// A Pool is a private pool by handle; a PoolScope sends a thread's requests to it.
//
//   ashlar::Pool pool(allocator);
//   {
//     const ashlar::PoolScope scope(pool);                     // this thread's requests for the default pool
//     block = *allocator.Allocate(300 * ashlar::kMiB, stream); // comes from the pool
//   }
//   allocator.Free(block);                                     // at any time; the pool keeps the memory
//
// The handle's destructor returns the memory that is free then. Live blocks stay valid, and EmptyCache returns their
// memory once they are freed. A scope uses the pool as well: a scope that ends later keeps the pool until then.
// Threads: one thread at a time uses a handle; a scope belongs to the thread that opened it.
#ifndef ASHLAR_POOL_H_
#define ASHLAR_POOL_H_

#include "ashlar/allocator.h"
#include "ashlar/export.h"
#include "ashlar/units.h"

namespace ashlar {

class ASHLAR_EXPORT Pool {
 public:
  explicit Pool(Allocator& allocator, const PoolTraits& traits = {});
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  PoolId id() const { return id_; }
  Allocator& allocator() const { return allocator_; }

 private:
  Allocator& allocator_;
  PoolId id_;
};

// A pool has one scope at a time; scopes of several pools nest, and the innermost counts.
class ASHLAR_EXPORT PoolScope {
 public:
  explicit PoolScope(const Pool& pool);
  ~PoolScope();
  PoolScope(const PoolScope&) = delete;
  PoolScope& operator=(const PoolScope&) = delete;

 private:
  Allocator& allocator_;
  PoolId id_;
};

}  // namespace ashlar

#endif  // ASHLAR_POOL_H_
