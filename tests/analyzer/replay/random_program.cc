#include "tests/analyzer/replay/random_program.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace ashlar::replay {
namespace {

// Sizes of all classes; many equal ones, so that ties happen.
std::uint64_t RandomBytes(const ProgramShape& shape, Rng& rng) {
  std::uint64_t bytes = 0;
  switch (rng.Below(8)) {
    case 0:
      bytes = 1 + rng.Below(4096);
      break;
    case 1:
      bytes = 512 * (1 + rng.Below(8));
      break;
    case 2:
      bytes = 1 + rng.Below(kMiB);
      break;
    case 3:
      bytes = kMiB * (1 + rng.Below(10));
      break;
    case 4:
      bytes = kMiB + rng.Below(9 * kMiB);
      break;
    case 5:
      bytes = kMiB / 2 * (2 + rng.Below(40));
      break;
    case 6:
      bytes = 10 * kMiB + rng.Below(12 * kMiB);
      break;
    default:
      bytes = kMiB + rng.Below(shape.max_bytes);
  }
  return std::min(bytes, shape.max_bytes);
}

class ProgramWriter {
 public:
  ProgramWriter(const ProgramShape& shape, Rng& rng, Program& program) : shape_(shape), rng_(rng), ops_(program.ops) {}

  void Write() {
    if (shape_.has_overflow_pool) ops_.push_back({.kind = OpKind::kConfigurePool, .pool = 1});
    for (std::size_t i = 0; i < shape_.op_count; ++i) AddOp();
  }

 private:
  void AddOp() {
    if (rng_.Below(1000) < shape_.empty_cache_in_1000) return Add({.kind = OpKind::kEmptyCache});
    if (rng_.Below(1000) < shape_.record_stream_in_1000) return AddStreamOp();
    if (shape_.releases_pools && rng_.Below(100) == 0) {
      return Add({.kind = OpKind::kReleasePool, .pool = 1 + rng_.Below(shape_.pools - 1)});
    }
    // Phases of growth and of decay.
    const bool grows = (ops_.size() / 40) % 2 == 0;
    if (live_.empty() || rng_.Below(100) < (grows ? 65 : 40)) return AddAlloc();
    AddFree();
  }

  void AddStreamOp() {
    const std::uint64_t stream = rng_.Below(shape_.streams + 1);
    switch (rng_.Below(6)) {
      case 0:
        return Add({.kind = OpKind::kFinishStream, .stream = stream});
      case 1:
        return Add({.kind = OpKind::kFinishAll});
      default:
        if (!live_.empty())
          Add({.kind = OpKind::kRecordStream, .id = live_[rng_.Below(live_.size())], .stream = stream});
    }
  }

  void AddAlloc() {
    live_.push_back(next_id_++);
    Add({.kind = OpKind::kAlloc,
         .id = live_.back(),
         .bytes = RandomBytes(shape_, rng_),
         .stream = rng_.Below(shape_.streams),
         .pool = rng_.Below(shape_.pools)});
  }

  void AddFree() {
    const std::size_t index = rng_.Below(live_.size());
    Add({.kind = OpKind::kFree, .id = std::exchange(live_[index], live_.back())});
    live_.pop_back();
  }

  void Add(const Op& op) { ops_.push_back(op); }

  const ProgramShape& shape_;
  Rng& rng_;
  std::vector<Op>& ops_;
  std::vector<std::uint32_t> live_;
  std::uint32_t next_id_ = 0;
};

}  // namespace

void AddRandomOps(const ProgramShape& shape, Rng& rng, Program& program) { ProgramWriter(shape, rng, program).Write(); }

Program Shrink(Program program, const std::function<bool(const Program&)>& fails) {
  for (std::size_t chunk = std::max<std::size_t>(program.ops.size() / 2, 1); chunk > 0; chunk /= 2) {
    for (std::size_t i = 0; i < program.ops.size();) {
      Program smaller = program;
      const auto first = smaller.ops.begin() + static_cast<std::ptrdiff_t>(i);
      const auto last = smaller.ops.begin() + static_cast<std::ptrdiff_t>(std::min(i + chunk, smaller.ops.size()));
      smaller.ops.erase(first, last);
      if (fails(smaller)) {
        program = std::move(smaller);
      } else {
        i += chunk;
      }
    }
  }
  return program;
}

}  // namespace ashlar::replay
