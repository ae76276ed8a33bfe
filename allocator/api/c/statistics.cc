#include "ashlar/statistics.h"

#include "absl/status/status.h"
#include "allocator/api/c/handle.h"

namespace ashlar::c {
namespace {

ashlar_statistics Of(const Stats& stats, std::uint64_t total_bytes) {
  const auto now = [](const PoolStat& stat) { return static_cast<std::uint64_t>(stat.all().current); };
  const auto peak = [](const PoolStat& stat) { return static_cast<std::uint64_t>(stat.all().peak); };
  return {.struct_size = 0,
          .allocated_bytes = now(stats.allocated_bytes),
          .peak_allocated_bytes = peak(stats.allocated_bytes),
          .requested_bytes = now(stats.requested_bytes),
          .peak_requested_bytes = peak(stats.requested_bytes),
          .active_bytes = now(stats.active_bytes),
          .peak_active_bytes = peak(stats.active_bytes),
          .reserved_bytes = now(stats.reserved_bytes),
          .peak_reserved_bytes = peak(stats.reserved_bytes),
          .allocations = static_cast<std::uint64_t>(stats.allocation.all().allocated),
          .frees = static_cast<std::uint64_t>(stats.allocation.all().freed()),
          .device_allocations = stats.num_device_alloc,
          .device_frees = stats.num_device_free,
          .retries = stats.num_alloc_retries,
          .out_of_memory_errors = stats.num_ooms,
          .total_bytes = total_bytes,
          .stream_waits = stats.num_stream_waits};
}

ashlar_pool_statistics Of(PoolId pool, const PoolStat& reserved) {
  ashlar_pool_statistics out = {};
  out.struct_size = sizeof(out);
  out.pool = {pool.first, pool.second};
  for (std::size_t kind = 0; kind < 3; ++kind) {
    const Stat& stat = reserved[static_cast<PoolKind>(kind)];
    out.reserved_bytes[kind] = static_cast<std::uint64_t>(stat.current);
    out.peak_reserved_bytes[kind] = static_cast<std::uint64_t>(stat.peak);
    out.obtained_bytes[kind] = static_cast<std::uint64_t>(stat.allocated);
    out.returned_bytes[kind] = static_cast<std::uint64_t>(stat.freed());
  }
  return out;
}

}  // namespace
}  // namespace ashlar::c

extern "C" {

ashlar_status ashlar_visit_pools(const ashlar_allocator* allocator, ashlar_visit_pool visit, void* context) {
  return ashlar::c::Call([&] {
    for (const auto& [pool, reserved] : allocator->allocator.reserved_by_pools()) {
      const ashlar_pool_statistics shown = ashlar::c::Of(pool, reserved);
      visit(context, &shown);
    }
    return absl::OkStatus();
  });
}

ashlar_status ashlar_get_statistics(const ashlar_allocator* allocator, ashlar_statistics* out) {
  ashlar_statistics statistics;
  const ashlar_status status = ashlar::c::Call([&] {
    statistics = ashlar::c::Of(allocator->allocator.stats(), allocator->allocator.device_total_bytes());
    return absl::OkStatus();
  });
  return status == ASHLAR_OK ? ashlar::c::Fill(out, statistics, "ashlar_statistics") : status;
}

ashlar_status ashlar_reset_peaks(ashlar_allocator* allocator) {
  return ashlar::c::Call([&] {
    allocator->allocator.ResetPeaks();
    return absl::OkStatus();
  });
}

ashlar_status ashlar_torch_statistics(const ashlar_allocator* allocator, ashlar_visit_statistic visit, void* context) {
  return ashlar::c::Call([&] {
    const ashlar::Allocator& known = allocator->allocator;
    for (const auto& [name, value] : ashlar::TorchStatistics(known.stats(), known.settings()))
      visit(context, name.c_str(), value);
    return absl::OkStatus();
  });
}

}  // extern "C"
