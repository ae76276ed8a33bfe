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
#include <functional>
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

// Told how much of what is kept has been copied, after each piece of at most 64 MiB: in the thread that sleeps or
// wakes, under the allocator's lock. It must not use the allocator, must not wait for a thread that does, and must not
// throw.
using SleepProgress = std::function<void(std::uint64_t copied_bytes, std::uint64_t all_bytes)>;

inline constexpr std::uint64_t kNoHostLimit = std::numeric_limits<std::uint64_t>::max();

// Which pools: those with one of the tags, and those of the ids. Where nothing is named: all.
struct SleepingPools {
  std::vector<std::string> tags = {};
  std::vector<PoolId> pools = {};
  SleepProgress progress = {};
};

struct SleepOptions {
  std::vector<std::string> tags = {};
  std::vector<PoolId> pools = {};
  Keep keep = Keep::kHost;
  // Of all that this allocator keeps in memory of the host, which is page-locked. Without a limit: three quarters of
  // what the host can give when the call is made.
  std::uint64_t host_limit_bytes = kNoHostLimit;
  // Where the file is, which has no name and goes with the process; "": TMPDIR, else /tmp.
  std::string folder = {};
  SleepProgress progress = {};
};

struct SleepReport {
  std::uint64_t returned_bytes = 0;  // to the device, with what was cached
  std::uint64_t kept_host_bytes = 0;
  std::uint64_t kept_file_bytes = 0;
  // Of pools that stay awake: a range of theirs is registered (RegisterRange), or another process has a page of a live
  // block (SharePage).
  std::uint64_t left_bytes = 0;
};

// A part of the device's memory in use (Allocator::Held).
struct HeldPart {
  std::string owner;  // "the default pool", "pool {0, 7} \"rollout\"", what keeps it awake; or what is outside
  std::uint64_t bytes = 0;
};

}  // namespace ashlar

#endif  // ASHLAR_SLEEP_H_
