// A program of requests run through the allocator over a simulated device, recorded as PyTorch records one: a ring
// of the last events, and the segments at the end.
//
//   Program program{.compat = policy::Compat::kTorch26, .conf = "max_split_size_mb:32"};
//   program.ops = {{.kind = OpKind::kAlloc, .id = 0, .bytes = 3 * kMiB}, {.kind = OpKind::kFree, .id = 0}};
//   const Recording recording = Record(program);
//   const trace::Snapshot snapshot = MakeSnapshot(recording, {.window = 10});     // the last 10 events
#ifndef ASHLAR_TESTS_ANALYZER_REPLAY_RECORDER_H_
#define ASHLAR_TESTS_ANALYZER_REPLAY_RECORDER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/core/stats.h"
#include "allocator/device/address_space.h"
#include "allocator/policy/options.h"
#include "allocator/trace/event.h"
#include "allocator/trace/snapshot.h"

namespace ashlar::replay {

enum class OpKind : std::uint8_t {
  kAlloc,
  kFree,
  kRecordStream,
  kFinishStream,  // the stream's work so far is done; nobody is told
  kFinishAll,
  kEmptyCache,
  kReleasePool,    // the user of private pool `pool` is gone
  kKeepPool,       // remembers the state of private pool `pool`, as a CUDA graph tree does
  kPutBackPool,    // and brings the pool back to it: its blocks of then are live again, no others are
  kConfigurePool,  // private pool `pool` serves others when memory runs out (use_on_oom)
};

// Ops on an id that is not live (its allocation failed, or was taken out of the program) do nothing.
struct Op {
  OpKind kind = OpKind::kAlloc;
  std::uint32_t id = 0;
  std::uint64_t bytes = 0;
  std::uint64_t stream = 0;
  std::uint64_t pool = 0;  // 0 = the default pool, n = the private pool {0, n}
};

struct Program {
  policy::Compat compat = policy::Compat::kTorch210;
  std::string conf = {};
  std::uint64_t capacity_bytes = 16 * kGiB;
  device::AddressOrder address_order = device::AddressOrder::kAscending;
  std::optional<double> memory_fraction = {};
  std::vector<Op> ops = {};

  // Parsed from `conf`, which must be valid.
  policy::Options Options() const;
};

// The program as C++, to paste into a test.
std::string ToCpp(const Program& program);

struct Recording {
  std::vector<trace::Event> events;
  std::vector<std::size_t> first_events;  // of each op: how many events there were before it
  std::vector<trace::SnapshotSegment> segments;
  core::Stats stats;
};

Recording Record(const Program& program);

struct SnapshotShape {
  std::size_t window = static_cast<std::size_t>(-1);  // the last so many events
  bool has_pool_ids = true;                           // of events; PyTorch has written them since 2026
  int device = 0;
};

trace::Snapshot MakeSnapshot(const Recording& recording, const SnapshotShape& shape);

}  // namespace ashlar::replay

#endif  // ASHLAR_TESTS_ANALYZER_REPLAY_RECORDER_H_
