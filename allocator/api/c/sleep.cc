#include "ashlar/sleep.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/api/c/handle.h"

namespace ashlar::c {
namespace {

// The caller's may be shorter than ours: what it has not is as in ours, which name nothing.
absl::StatusOr<SleepOptions> SleepOptionsOf(const ashlar_sleep_options* given) {
  ashlar_sleep_options known{};
  known.host_limit_bytes = kNoHostLimit;
  if (given != nullptr) {
    if (given->struct_size < sizeof(std::size_t)) {
      return absl::InvalidArgumentError(
          "ashlar_sleep_options: struct_size is not set: write sizeof(ashlar_sleep_options) into it before the call");
    }
    std::memcpy(&known, given, given->struct_size < sizeof(known) ? given->struct_size : sizeof(known));
  }
  if (known.keep < ASHLAR_KEEP_HOST || known.keep > ASHLAR_KEEP_FILE)
    return absl::InvalidArgumentError("ashlar_sleep_options: keep is none of ASHLAR_KEEP_...");
  SleepOptions out{.keep = static_cast<Keep>(known.keep), .host_limit_bytes = known.host_limit_bytes};
  if (known.folder != nullptr) out.folder = known.folder;
  if (known.progress != nullptr) {
    out.progress = [known](std::uint64_t copied, std::uint64_t all) { known.progress(known.context, copied, all); };
  }
  for (std::size_t i = 0; i < known.tag_count; ++i) out.tags.emplace_back(known.tags[i]);
  for (std::size_t i = 0; i < known.pool_count; ++i) out.pools.push_back(PoolOf(known.pools[i]));
  return out;
}
static_assert(static_cast<int>(Keep::kHost) == ASHLAR_KEEP_HOST && static_cast<int>(Keep::kFile) == ASHLAR_KEEP_FILE);

}  // namespace
}  // namespace ashlar::c

extern "C" {

ashlar_status ashlar_tag_pool(ashlar_allocator* allocator, ashlar_pool pool, const char* tag) {
  return ashlar::c::Call([&] { return allocator->allocator.TagPool(ashlar::c::PoolOf(pool), tag); });
}

ashlar_status ashlar_sleep(ashlar_allocator* allocator, const ashlar_sleep_options* options,
                           ashlar_sleep_report* report) {
  if (report != nullptr && report->struct_size < sizeof(std::size_t))
    return ashlar::c::FailAtSize("ashlar_sleep_report");
  ashlar::SleepReport slept;
  const ashlar_status status = ashlar::c::Call([&]() -> absl::Status {
    const absl::StatusOr<ashlar::SleepOptions> wanted = ashlar::c::SleepOptionsOf(options);
    if (!wanted.ok()) return wanted.status();
    const absl::StatusOr<ashlar::SleepReport> done = allocator->allocator.Sleep(*wanted);
    if (done.ok()) slept = *done;
    return done.status();
  });
  if (status != ASHLAR_OK || report == nullptr) return status;
  return ashlar::c::Fill(report,
                         {.struct_size = 0,
                          .returned_bytes = slept.returned_bytes,
                          .kept_host_bytes = slept.kept_host_bytes,
                          .kept_file_bytes = slept.kept_file_bytes,
                          .left_bytes = slept.left_bytes},
                         "ashlar_sleep_report");
}

ashlar_status ashlar_wake(ashlar_allocator* allocator, const ashlar_sleep_options* pools) {
  return ashlar::c::Call([&]() -> absl::Status {
    absl::StatusOr<ashlar::SleepOptions> wanted = ashlar::c::SleepOptionsOf(pools);
    if (!wanted.ok()) return wanted.status();
    return allocator->allocator.Wake({std::move(wanted->tags), std::move(wanted->pools), std::move(wanted->progress)});
  });
}

int ashlar_is_asleep(const ashlar_allocator* allocator, const void* address) {
  return allocator->allocator.IsAsleep(ashlar::c::AddressOf(address)) ? 1 : 0;
}

ashlar_status ashlar_visit_held_parts(const ashlar_allocator* allocator, ashlar_visit_held visit, void* context) {
  return ashlar::c::Call([&] {
    for (const ashlar::HeldPart& part : allocator->allocator.Held()) visit(context, part.owner.c_str(), part.bytes);
    return absl::OkStatus();
  });
}

ashlar_status ashlar_register_range(ashlar_allocator* allocator, const void* address, size_t bytes) {
  return ashlar::c::Call([&] { return allocator->allocator.RegisterRange(address, bytes); });
}

ashlar_status ashlar_unregister_range(ashlar_allocator* allocator, const void* address) {
  return ashlar::c::Call([&] { return allocator->allocator.UnregisterRange(address); });
}

}  // extern "C"
