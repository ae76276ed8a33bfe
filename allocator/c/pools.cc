#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "allocator/c/handle.h"
#include "ashlar/pool_routes.h"

namespace ashlar::c {
namespace {

ashlar_stream PointerOf(Stream stream) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(Handle(stream))); }

absl::Status IsDefaultPool(const char* call) {
  return absl::InvalidArgumentError(absl::StrCat(call, ": {0, 0} is the default pool: name another"));
}

// A filter of C's with its context, which is released with the last copy.
StreamFilter FilterOf(ashlar_stream_filter filter, void* context, ashlar_release_context release) {
  const std::shared_ptr<void> held(context, [release](void* given) {
    if (release != nullptr) release(given);
  });
  return [filter, held](Stream stream) { return filter == nullptr || filter(held.get(), PointerOf(stream)) != 0; };
}

}  // namespace
}  // namespace ashlar::c

extern "C" {

// The ids lie above those that PyTorch counts from 1 on: one process may have pools of both.
ashlar_status ashlar_create_pool(ashlar_allocator* allocator, ashlar_pool* out) {
  static std::atomic<std::uint64_t> next{std::uint64_t{1} << 40};
  return ashlar::c::Call([&] {
    const ashlar::PoolId pool{0, next.fetch_add(1)};
    allocator->allocator.RetainPool(pool);
    *out = {pool.first, pool.second};
    return absl::OkStatus();
  });
}

ashlar_status ashlar_configure_pool(ashlar_allocator* allocator, ashlar_pool pool, int use_on_oom, int no_split) {
  return ashlar::c::Call([&]() -> absl::Status {
    if (ashlar::c::PoolOf(pool).IsDefault()) return ashlar::c::IsDefaultPool("ashlar_configure_pool");
    allocator->allocator.ConfigurePool(ashlar::c::PoolOf(pool),
                                       {.use_on_oom = use_on_oom != 0, .no_split = no_split != 0});
    return absl::OkStatus();
  });
}

ashlar_status ashlar_retain_pool(ashlar_allocator* allocator, ashlar_pool pool) {
  return ashlar::c::Call([&]() -> absl::Status {
    if (ashlar::c::PoolOf(pool).IsDefault()) return ashlar::c::IsDefaultPool("ashlar_retain_pool");
    allocator->allocator.RetainPool(ashlar::c::PoolOf(pool));
    return absl::OkStatus();
  });
}

ashlar_status ashlar_release_pool(ashlar_allocator* allocator, ashlar_pool pool) {
  return ashlar::c::Call([&]() -> absl::Status {
    if (ashlar::c::PoolOf(pool).IsDefault()) return ashlar::c::IsDefaultPool("ashlar_release_pool");
    if (allocator->allocator.PoolUseCount(ashlar::c::PoolOf(pool)) == 0)
      return absl::FailedPreconditionError("ashlar_release_pool: the pool has no user");
    allocator->allocator.ReleasePool(ashlar::c::PoolOf(pool));
    return absl::OkStatus();
  });
}

uint64_t ashlar_pool_users(const ashlar_allocator* allocator, ashlar_pool pool) {
  return allocator->allocator.PoolUseCount(ashlar::c::PoolOf(pool));
}

ashlar_status ashlar_begin_pool(ashlar_allocator* allocator, ashlar_pool pool, int32_t route,
                                ashlar_stream_filter filter, void* context, ashlar_release_context release) {
  return ashlar::c::Call([&]() -> absl::Status {
    ashlar::StreamFilter accepts = ashlar::c::FilterOf(filter, context, release);
    if (route != ASHLAR_ROUTE_PLAIN && route != ASHLAR_ROUTE_CAPTURE)
      return absl::InvalidArgumentError("ashlar_begin_pool: the route is none of ASHLAR_ROUTE_...");
    const auto kind = route == ASHLAR_ROUTE_CAPTURE ? ashlar::RouteKind::kCapture : ashlar::RouteKind::kPlain;
    return allocator->allocator.BeginPool(ashlar::c::PoolOf(pool), std::move(accepts), kind);
  });
}

ashlar_status ashlar_end_pool(ashlar_allocator* allocator, ashlar_pool pool) {
  return ashlar::c::Call([&] { return allocator->allocator.EndPool(ashlar::c::PoolOf(pool)); });
}

ashlar_status ashlar_empty_pool(ashlar_allocator* allocator, ashlar_pool pool) {
  return ashlar::c::Call([&] { return allocator->allocator.EmptyPool(ashlar::c::PoolOf(pool)); });
}

}  // extern "C"
