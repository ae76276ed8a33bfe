#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/api/c/handle.h"
#include "ashlar/pool_routes.h"
#include "ashlar/snapshot.h"

namespace ashlar::c {
namespace {

absl::Status NoBlockAt(const char* call, const void* memory) {
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s: no live block of this allocator begins at 0x%x: it was freed already, or is another allocator's", call,
      AddressOf(memory)));
}

ashlar_status Allocate(ashlar_allocator* allocator, PoolId pool, std::size_t bytes, ashlar_stream stream, void** out) {
  *out = nullptr;
  return Call([&]() -> absl::Status {
    const absl::StatusOr<std::uint64_t> address = allocator->allocator.AllocateAddress(bytes, StreamOf(stream), pool);
    if (!address.ok()) return address.status();
    *out = PointerOf(*address);
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace ashlar::c

extern "C" {

ashlar_status ashlar_allocate(ashlar_allocator* allocator, size_t bytes, ashlar_stream stream, void** out) {
  return ashlar::c::Allocate(allocator, {}, bytes, stream, out);
}

ashlar_status ashlar_allocate_in_pool(ashlar_allocator* allocator, ashlar_pool pool, size_t bytes, ashlar_stream stream,
                                      void** out) {
  return ashlar::c::Allocate(allocator, ashlar::c::PoolOf(pool), bytes, stream, out);
}

ashlar_status ashlar_free(ashlar_allocator* allocator, void* memory) {
  if (memory == nullptr || allocator->allocator.FreeAddress(ashlar::c::AddressOf(memory))) return ASHLAR_OK;
  return ashlar::c::Call([&] { return ashlar::c::NoBlockAt("ashlar_free", memory); });
}

ashlar_status ashlar_record_stream(ashlar_allocator* allocator, void* memory, ashlar_stream stream) {
  if (allocator->allocator.RecordStreamOfAddress(ashlar::c::AddressOf(memory), ashlar::c::StreamOf(stream)))
    return ASHLAR_OK;
  return ashlar::c::Call([&] {
    return allocator->allocator.IsAsleep(ashlar::c::AddressOf(memory))
               ? absl::FailedPreconditionError(
                     "ashlar_record_stream: the block's pool is asleep: call ashlar_wake first")
               : ashlar::c::NoBlockAt("ashlar_record_stream", memory);
  });
}

ashlar_status ashlar_find_block(ashlar_allocator* allocator, const void* address, ashlar_block* out) {
  std::optional<ashlar::BlockPlace> place;
  const ashlar_status status = ashlar::c::Call([&]() -> absl::Status {
    place = allocator->allocator.FindBlock(ashlar::c::AddressOf(address));
    if (place.has_value()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrFormat("ashlar_find_block: no live block of this allocator holds 0x%x",
                                                      ashlar::c::AddressOf(address)));
  });
  if (status != ASHLAR_OK) return status;
  return ashlar::c::Fill(out,
                         {.struct_size = 0,
                          .address = ashlar::c::PointerOf(place->address),
                          .size_bytes = place->size_bytes,
                          .requested_bytes = place->requested_bytes,
                          .segment_address = ashlar::c::PointerOf(place->segment_address),
                          .segment_bytes = place->segment_bytes},
                         "ashlar_block");
}

ashlar_status ashlar_share_page(ashlar_allocator* allocator, const void* address, ashlar_shared_page* out) {
  ashlar::SharedPage page;
  const ashlar_status status = ashlar::c::Call([&]() -> absl::Status {
    const absl::StatusOr<ashlar::SharedPage> shared = allocator->allocator.SharePage(ashlar::c::AddressOf(address));
    if (shared.ok()) page = *shared;
    return shared.status();
  });
  if (status != ASHLAR_OK) return status;
  return ashlar::c::Fill(out,
                         {.struct_size = 0,
                          .address = ashlar::c::PointerOf(page.address),
                          .size_bytes = page.size_bytes,
                          .file = page.file},
                         "ashlar_shared_page");
}

int ashlar_holds(const ashlar_allocator* allocator, const void* address) {
  return allocator->allocator.Holds(ashlar::c::AddressOf(address)) ? 1 : 0;
}

int ashlar_may_hold(const ashlar_allocator* allocator, const void* address) {
  return allocator->allocator.MayHold(ashlar::c::AddressOf(address)) ? 1 : 0;
}

ashlar_status ashlar_allocate_at(ashlar_allocator* allocator, void* address, size_t block_bytes,
                                 size_t requested_bytes) {
  return ashlar::c::Call([&]() -> absl::Status {
    const std::uint64_t at = ashlar::c::AddressOf(address);
    if (allocator->allocator.AllocateAddressAt(at, block_bytes, requested_bytes)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrFormat("ashlar_allocate_at: %d bytes at 0x%x are not free in a segment of this allocator: free what "
                        "lies there first",
                        block_bytes, at));
  });
}

ashlar_status ashlar_allocate_exactly(ashlar_allocator* allocator, size_t bytes, ashlar_stream stream, void* address) {
  return ashlar::c::Call([&] {
    return allocator->allocator.AllocateAddressExactly(bytes, ashlar::c::StreamOf(stream),
                                                       ashlar::c::AddressOf(address));
  });
}

ashlar_status ashlar_add_free_memory_callback(ashlar_allocator* allocator, ashlar_free_memory callback, void* context) {
  return ashlar::c::Call([&] {
    allocator->allocator.AddFreeMemoryCallback([callback, context] { return callback(context) != 0; });
    return absl::OkStatus();
  });
}

ashlar_status ashlar_poll(ashlar_allocator* allocator) {
  return ashlar::c::Call([&] {
    allocator->allocator.PollEvents();
    return allocator->allocator.TakeDeviceError();
  });
}

ashlar_status ashlar_empty_cache(ashlar_allocator* allocator) {
  return ashlar::c::Call([&] {
    allocator->allocator.EmptyCache();
    return allocator->allocator.TakeDeviceError();
  });
}

ashlar_status ashlar_set_memory_fraction(ashlar_allocator* allocator, double fraction) {
  return ashlar::c::Call([&] { return allocator->allocator.SetMemoryFraction(fraction); });
}

ashlar_status ashlar_set_memory_limit(ashlar_allocator* allocator, uint64_t bytes) {
  return ashlar::c::Call([&] {
    allocator->allocator.SetMemoryLimit(bytes == UINT64_MAX ? std::nullopt : std::optional<std::uint64_t>(bytes));
    return absl::OkStatus();
  });
}

}  // extern "C"

namespace ashlar::c {
namespace {

absl::Status IsDefaultPool(const char* call) {
  return absl::InvalidArgumentError(absl::StrCat(call, ": {0, 0} is the default pool: name another"));
}

class PoolMemoryOfC final : public PoolMemory {
 public:
  PoolMemoryOfC(ashlar_allocate_segment allocate, ashlar_free_segment free_segment, void* context,
                ashlar_release_context release)
      : allocate_(allocate), free_segment_(free_segment), context_(context), release_(release) {}
  ~PoolMemoryOfC() override {
    if (release_ != nullptr) release_(context_);
  }
  PoolMemoryOfC(const PoolMemoryOfC&) = delete;
  PoolMemoryOfC& operator=(const PoolMemoryOfC&) = delete;

  std::uint64_t Allocate(std::uint64_t size_bytes) override { return AddressOf(allocate_(context_, size_bytes)); }
  void Free(std::uint64_t address) override { free_segment_(context_, PointerOf(address)); }

 private:
  const ashlar_allocate_segment allocate_;
  const ashlar_free_segment free_segment_;
  void* const context_;
  const ashlar_release_context release_;
};

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

ashlar_status ashlar_set_pool_memory(ashlar_allocator* allocator, ashlar_pool pool, ashlar_allocate_segment allocate,
                                     ashlar_free_segment free_segment, void* context, ashlar_release_context release) {
  return ashlar::c::Call([&]() -> absl::Status {
    auto memory = std::make_shared<ashlar::c::PoolMemoryOfC>(allocate, free_segment, context, release);
    if (allocate == nullptr || free_segment == nullptr) {
      return absl::InvalidArgumentError("ashlar_set_pool_memory: a function is NULL: a pool needs both");
    }
    return allocator->allocator.SetPoolMemory(ashlar::c::PoolOf(pool), std::move(memory));
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

ashlar_status ashlar_begin_capture(ashlar_allocator* allocator, ashlar_pool pool) {
  return ashlar::c::Call([&] { return allocator->allocator.BeginCapture(ashlar::c::PoolOf(pool)); });
}

ashlar_status ashlar_end_capture(ashlar_allocator* allocator, ashlar_pool pool) {
  return ashlar::c::Call([&] { return allocator->allocator.EndCapture(ashlar::c::PoolOf(pool)); });
}

ashlar_status ashlar_empty_pool(ashlar_allocator* allocator, ashlar_pool pool) {
  return ashlar::c::Call([&] { return allocator->allocator.EmptyPool(ashlar::c::PoolOf(pool)); });
}

}  // extern "C"
