// Private pools: who uses them, which requests go to them, and what a graph capture forbids meanwhile.
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/core/world.h"

namespace ashlar::core {
namespace {

std::string Name(PoolId pool) { return absl::StrCat("pool {", pool.first, ", ", pool.second, "}"); }

}  // namespace

void CachingAllocator::ConfigurePool(PoolId pool, bool use_on_oom, bool no_split) {
  const World world(*this);
  policy::PoolPair& pair = heap_.Pair(pool);
  pair.use_on_oom = use_on_oom;
  pair.no_split = no_split;
  EmitFact(trace::FactKind::kPoolTraits,
           (use_on_oom ? trace::kUsesOnOom : 0) + (no_split ? trace::kNoSplit : 0), pool);
}

PoolId CachingAllocator::CreatePool() {
  const World world(*this);
  PoolId pool;
  do {
    pool = {0, ++last_pool_};
  } while (heap_.FindPair(pool) != nullptr);
  heap_.Pair(pool);
  EmitUsers(pool);
  return pool;
}

void CachingAllocator::AddPoolUser(PoolId pool) {
  if (policy::PoolPair* pair = heap_.FindPair(pool); pair != nullptr) {
    ++pair->use_count;
  } else {
    heap_.Pair(pool);
  }
}

void CachingAllocator::RetainPool(PoolId pool) {
  const World world(*this);
  AddPoolUser(pool);
  EmitUsers(pool);
}

void CachingAllocator::ReleasePool(PoolId pool) {
  const World world(*this);
  policy::PoolPair& pair = heap_.Pair(pool);
  if (pair.use_count > 0) --pair.use_count;
  if (pair.use_count == 0) pair.no_split = false;
  EmitUsers(pool);
}

std::uint64_t CachingAllocator::PoolUseCount(PoolId pool) const {
  const World world(*this);
  const policy::PoolPair* pair = heap_.FindPair(pool);
  return pair == nullptr ? 0 : pair->use_count;
}

absl::Status CachingAllocator::EmptyPool(PoolId pool) {
  const World world(*this);
  if (absl::Status status = CannotReturn("EmptyPool"); !status.ok()) return status;
  const auto at = heap_.private_pairs().find(pool);
  if (at == heap_.private_pairs().end()) return absl::OkStatus();
  if (at->second->use_count > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(Name(pool), " has ", at->second->use_count, " users, who may still reach what is free in it"));
  }
  EmitFact(trace::FactKind::kEmptyPool, 0, pool);
  absl::Status status = SynchronizeEvents();
  ReturnPrivate(at, nullptr, status);
  if (!status.ok()) NoteLoss(world);
  return status;
}

absl::Status CachingAllocator::BeginPool(PoolId pool, StreamFilter filter, RouteKind kind) {
  const World world(*this);
  if (pool.IsDefault()) return absl::InvalidArgumentError("the default pool needs no route: requests go there anyway");
  const bool was_capturing = routes_.captures() > 0;
  if (!routes_.Open(pool, std::move(filter), kind)) {
    return absl::FailedPreconditionError(absl::StrCat(Name(pool), " has a route already: EndPool ends it"));
  }
  AddPoolUser(pool);
  EmitFact(trace::FactKind::kPoolBegin, kind == RouteKind::kCapture ? 1 : 0, pool);
  world.ChooseMode(*this);
  if (!was_capturing && routes_.captures() > 0) device_->SetCapturing(true);
  return absl::OkStatus();
}

absl::Status CachingAllocator::EndPool(PoolId pool) {
  const World world(*this);
  const bool was_capturing = routes_.captures() > 0;
  if (!routes_.Close(pool)) return absl::FailedPreconditionError(absl::StrCat(Name(pool), " has no route"));
  EmitFact(trace::FactKind::kPoolEnd, 0, pool);
  world.ChooseMode(*this);
  if (was_capturing && routes_.captures() == 0) {
    device_->SetCapturing(false);
    for (const auto& [block, streams] : std::exchange(deferred_, {})) WaitForStreams(block, streams);
  }
  return absl::OkStatus();
}

}  // namespace ashlar::core
