#include "ashlar/pool.h"

#include <thread>

#include "absl/strings/str_cat.h"
#include "allocator/base/check.h"

namespace ashlar {

Pool::Pool(Allocator& allocator, const PoolTraits& traits) : allocator_(allocator), id_(allocator.CreatePool(traits)) {}

Pool::~Pool() {
  allocator_.ReleasePool(id_);
  // What cannot be returned now, because a scope still uses the pool or a graph is being captured, EmptyCache returns.
  allocator_.EmptyPool(id_).IgnoreError();
}

PoolScope::PoolScope(const Pool& pool) : allocator_(pool.allocator()), id_(pool.id()) {
  const std::thread::id self = std::this_thread::get_id();
  const absl::Status begun = allocator_.BeginPool(id_, [self](Stream) { return std::this_thread::get_id() == self; });
  if (!begun.ok()) StopAtMisuse(absl::StrCat("PoolScope: ", begun.message()));
}

PoolScope::~PoolScope() {
  const absl::Status ended = allocator_.EndPool(id_);
  if (!ended.ok()) StopAtMisuse(absl::StrCat("PoolScope: ", ended.message()));
  allocator_.ReleasePool(id_);
}

}  // namespace ashlar
