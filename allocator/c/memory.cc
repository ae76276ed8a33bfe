#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "allocator/c/handle.h"
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
  return ashlar::c::Call([&] { return ashlar::c::NoBlockAt("ashlar_record_stream", memory); });
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

int ashlar_holds(const ashlar_allocator* allocator, const void* address) {
  return allocator->allocator.Holds(ashlar::c::AddressOf(address)) ? 1 : 0;
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
