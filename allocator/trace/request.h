// An op is one thing that a program asks of an allocator: the input of a replay. A plain text trace is a list of them.
#ifndef ASHLAR_ALLOCATOR_TRACE_REQUEST_H_
#define ASHLAR_ALLOCATOR_TRACE_REQUEST_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/trace/note.h"

namespace ashlar::trace {

enum class OpKind : std::uint8_t {
  kAlloc,         // `bytes` on `stream`, known as `id` from now on
  kFree,          // the block of `id`
  kRecordStream,  // `stream` also uses the block of `id`
  kDeviceSync,    // all device work recorded so far completes
  kStreamSync,    // all work recorded so far on `stream` completes
  kEmptyCache,    // the cache returns what it can
  kTagPool,       // the pool can sleep from here on
  kSleep,         // the pool's pages go back to the device, and its blocks stay; what is cached goes too
  kWake,          // and are there again
};

struct Op {
  std::uint64_t bytes = 0;
  Stream stream{};
  std::uint32_t id = 0;  // dense: 0 .. id_count - 1
  OpKind kind = OpKind::kAlloc;
  std::uint16_t pool = 0;  // index in RequestTrace::pools
};

// An allocation of a private pool that was put back into an earlier state (CUDA graph trees): it was not searched for.
// The block of `id` takes the place that `earlier` had. kNobody: it stood for memory that was free in that state.
struct PutBack {
  static constexpr std::uint32_t kNobody = std::numeric_limits<std::uint32_t>::max();

  std::uint32_t id = 0;
  std::uint32_t earlier = kNobody;
};

struct RequestTrace {
  std::vector<Op> requests;  // position = the trace's op number
  std::uint32_t id_count = 0;
  std::vector<PoolId> pools = {PoolId{}};  // the first is the default pool
  std::vector<PutBack> put_back = {};      // by id
  // What it was read from, and what of that is left out, in words: "RMM log (2 failed requests left out)". Empty: it is
  // a request trace as it stands.
  std::string source = {};
  std::vector<Note> notes = {};  // on what was read
};

// One allocation as offline packing sees it: alive in [lower, upper), in any unit of time, `size` bytes.
struct Lifetime {
  std::int64_t lower = 0;
  std::int64_t upper = 0;  // > lower
  std::uint64_t size = 0;

  bool Meets(const Lifetime& other) const { return lower < other.upper && other.lower < upper; }
  bool operator==(const Lifetime&) const = default;
};

}  // namespace ashlar::trace

#endif  // ASHLAR_ALLOCATOR_TRACE_REQUEST_H_
