// The smallest device that serves every request of a run, by halving to a page of 2 MiB. Each try replays the run from
// an empty allocator.
//
//   MemoryNeed need = NeedOf(requests, options, peak_bytes);
//   need.Bytes()
#ifndef ASHLAR_ANALYZER_REMEDIES_DEVICE_NEED_H_
#define ASHLAR_ANALYZER_REMEDIES_DEVICE_NEED_H_

#include <cstdint>
#include <optional>

#include "allocator/policy/options.h"
#include "allocator/trace/request.h"

namespace ashlar::remedies {

struct MemoryNeed {
  std::uint64_t peak_reserved_bytes = 0;               // in memory that does not run out
  std::optional<std::uint64_t> smallest_device_bytes;  // that serves every request; nullopt: not looked for

  std::uint64_t Bytes() const { return smallest_device_bytes.value_or(peak_reserved_bytes); }
};

struct ServedRun {
  std::uint64_t peak_reserved_bytes = 0;
  std::uint64_t peak_active_bytes = 0;
};

// nullopt where a request failed.
std::optional<ServedRun> Served(const trace::RequestTrace& requests, const policy::Options& options,
                                std::uint64_t capacity_bytes);

// Of traces of more than a million requests the smallest device is not looked for. No device below `least_bytes` is
// tried. 0 where the requests cannot be replayed.
MemoryNeed NeedOf(const trace::RequestTrace& requests, const policy::Options& options, std::uint64_t least_bytes);

}  // namespace ashlar::remedies

#endif  // ASHLAR_ANALYZER_REMEDIES_DEVICE_NEED_H_
