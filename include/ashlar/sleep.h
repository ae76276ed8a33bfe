// What sleeps: pools whose pages go back to the device while their blocks and addresses stay (Allocator::Sleep, Wake).
//
//   allocator.TagPool(pool, "rollout");
//   absl::StatusOr<ashlar::SleepReport> slept = allocator.Sleep({.tags = {"rollout"}, .keep = ashlar::Keep::kHost});
//   ...                                              // another phase has the memory
//   absl::Status woken = allocator.Wake({.tags = {"rollout"}});  // the same bytes at the same addresses
//
// Plain values; sizes are bytes.
#ifndef ASHLAR_SLEEP_H_
#define ASHLAR_SLEEP_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "ashlar/units.h"

namespace ashlar {

// What becomes of the contents of live blocks.
enum class Keep : std::uint8_t {
  kHost,     // they are copied to memory of the host, and what is beyond host_limit_bytes to a file
  kNothing,  // they are lost: what is there after Wake is written anew
  kFile,     // they are copied to a file
};

// Which pools: those with one of the tags, and those of the ids. Where nothing is named: all.
struct SleepingPools {
  std::vector<std::string> tags = {};
  std::vector<PoolId> pools = {};
};

struct SleepOptions {
  std::vector<std::string> tags = {};
  std::vector<PoolId> pools = {};
  Keep keep = Keep::kHost;
  // Of all that this allocator keeps in memory of the host.
  std::uint64_t host_limit_bytes = std::numeric_limits<std::uint64_t>::max();
  // Where the file is, which has no name and goes with the process; "": TMPDIR, else /tmp.
  std::string folder = {};
};

struct SleepReport {
  std::uint64_t returned_bytes = 0;  // to the device, with what was cached
  std::uint64_t kept_host_bytes = 0;
  std::uint64_t kept_file_bytes = 0;
  std::uint64_t left_bytes = 0;  // of pools that stay awake, since a range of theirs is registered (RegisterRange)
};

}  // namespace ashlar

#endif  // ASHLAR_SLEEP_H_
