// A private pool by handle, and the scope in which a thread's requests go to it.
//
//   UserPool pool(allocator);
//   {
//     const PoolScope scope(pool);                             // this thread's requests for the default pool
//     block = *allocator.Allocate(300 * kMiB, Stream{0});      // comes from the pool
//   }
//   allocator.Free(block);                                     // at any time; the pool keeps the memory
//
// The end of the handle gives back what is free then; blocks that still live stay valid, and EmptyCache returns their
// memory once they are freed. A scope uses the pool as well: one that ends later keeps it until then.
// Threads: a handle by one thread at a time; a scope belongs to the thread that opened it.
#ifndef ASHLAR_ALLOCATOR_CORE_USER_POOL_H_
#define ASHLAR_ALLOCATOR_CORE_USER_POOL_H_

#include <thread>

#include "allocator/base/check.h"
#include "allocator/core/caching_allocator.h"

namespace ashlar::core {

// What PyTorch's MemPool offers; see docs/policy.md.
struct PoolTraits {
  bool use_on_oom = false;
  bool no_split = false;
};

class UserPool {
 public:
  explicit UserPool(CachingAllocator& allocator, const PoolTraits& traits = {})
      : allocator_(allocator), id_(allocator.CreatePool()) {
    allocator_.ConfigurePool(id_, traits.use_on_oom, traits.no_split);
  }
  ~UserPool() {
    allocator_.ReleasePool(id_);
    // What cannot be returned now, because a scope still uses the pool or a graph is being captured, EmptyCache
    // returns.
    allocator_.EmptyPool(id_).IgnoreError();
  }
  UserPool(const UserPool&) = delete;
  UserPool& operator=(const UserPool&) = delete;

  PoolId id() const { return id_; }
  CachingAllocator& allocator() const { return allocator_; }

 private:
  CachingAllocator& allocator_;
  PoolId id_;
};

// A pool has one scope at a time; scopes of several pools nest, and the innermost counts.
class PoolScope {
 public:
  explicit PoolScope(const UserPool& pool) : allocator_(pool.allocator()), id_(pool.id()) {
    const std::thread::id self = std::this_thread::get_id();
    const absl::Status begun = allocator_.BeginPool(id_, [self](Stream) { return std::this_thread::get_id() == self; });
    ASHLAR_CHECK(begun.ok());
  }
  ~PoolScope() {
    ASHLAR_CHECK(allocator_.EndPool(id_).ok());
    allocator_.ReleasePool(id_);
  }
  PoolScope(const PoolScope&) = delete;
  PoolScope& operator=(const PoolScope&) = delete;

 private:
  CachingAllocator& allocator_;
  PoolId id_;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_USER_POOL_H_
