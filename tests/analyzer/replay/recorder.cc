#include "tests/analyzer/replay/recorder.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/check.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/core/inspect.h"
#include "allocator/device/sim_device.h"

namespace ashlar::replay {
namespace {

class EventList final : public trace::EventSink {
 public:
  void OnEvent(const trace::Event& event, std::uint64_t) override { events.push_back(event); }
  std::vector<trace::Event> events;
};

device::SimDeviceOptions DeviceOf(const Program& program) {
  device::SimDeviceOptions options;
  options.capacity_bytes = program.capacity_bytes;
  options.address_order = program.address_order;
  return options;
}

class Runner {
 public:
  explicit Runner(const Program& program)
      : program_(program), device_(DeviceOf(program)), allocator_(&device_, program.Options()) {
    if (program.memory_fraction) ASHLAR_CHECK(allocator_.SetMemoryFraction(*program.memory_fraction).ok());
    allocator_.SetSink(&sink_);
  }

  Recording Run() {
    Recording out;
    for (const Op& op : program_.ops) {
      out.first_events.push_back(sink_.events.size());
      Do(op);
    }
    out.events = std::move(sink_.events);
    out.segments = allocator_.Segments();
    out.stats = allocator_.stats();
    return out;
  }

 private:
  void Do(const Op& op) {
    const PoolId pool{0, op.pool};
    switch (op.kind) {
      case OpKind::kAlloc:
        return Allocate(op, pool);
      case OpKind::kFree:
        if (core::Block* block = Take(op.id); block != nullptr) allocator_.Free(block);
        return;
      case OpKind::kRecordStream:
        if (const auto it = live_.find(op.id); it != live_.end()) {
          allocator_.RecordStream(it->second, Stream{op.stream});
        }
        return;
      case OpKind::kFinishStream:
        return device_.CompleteStream(Stream{op.stream});
      case OpKind::kFinishAll:
        return device_.CompleteAllWork();
      case OpKind::kEmptyCache:
        return allocator_.EmptyCache();
      case OpKind::kReleasePool:
        return allocator_.ReleasePool(pool);
      case OpKind::kKeepPool:
        return KeepPool(pool);
      case OpKind::kPutBackPool:
        return PutBackPool(pool);
      case OpKind::kConfigurePool:
        return allocator_.ConfigurePool(pool, /*use_on_oom=*/true, /*no_split=*/false);
    }
  }

  void Allocate(const Op& op, PoolId pool) {
    const absl::StatusOr<core::Block*> block = allocator_.Allocate(op.bytes, Stream{op.stream}, pool);
    if (block.ok() && *block != nullptr) live_[op.id] = *block;
  }

  void KeepPool(PoolId pool) {
    Kept& kept = kept_[pool] = {};
    for (const trace::SnapshotSegment& segment : allocator_.Segments()) {
      if (segment.pool == pool) kept.segments.push_back(segment);
    }
    for (const auto& [id, block] : live_) kept.ids[block->address] = id;
  }

  // As PyTorch does it: everything live is freed, every block of then is asked for, and those free then are freed.
  void PutBackPool(PoolId pool) {
    const Kept& kept = kept_[pool];
    for (auto it = live_.begin(); it != live_.end();) {
      core::Block* block = it->second;
      const bool is_own = block->segment->lane->pool->id == pool;
      it = is_own ? live_.erase(it) : std::next(it);
      if (is_own) allocator_.Free(block);
    }
    for (const trace::SnapshotSegment& segment : kept.segments) {
      std::vector<core::Block*> free;
      for (const trace::SnapshotBlock& block : segment.blocks) {
        core::Block* placed = core::Reconstruction(allocator_).AllocateAt({block.address, block.size_bytes});
        ASHLAR_CHECK(placed != nullptr);
        if (block.state == trace::BlockState::kFree) {
          free.push_back(placed);
        } else {
          live_[kept.ids.at(block.address)] = placed;
        }
      }
      for (core::Block* block : free) allocator_.Free(block);
    }
  }

  core::Block* Take(std::uint32_t id) {
    const auto it = live_.find(id);
    if (it == live_.end()) return nullptr;
    core::Block* block = it->second;
    live_.erase(it);
    return block;
  }

  const Program& program_;
  device::SimDevice device_;
  core::CachingAllocator allocator_;
  EventList sink_;
  std::map<std::uint32_t, core::Block*> live_;
  struct Kept {
    std::vector<trace::SnapshotSegment> segments;
    std::map<std::uint64_t, std::uint32_t> ids;  // by address
  };
  std::map<PoolId, Kept> kept_;
};

const char* NameOf(OpKind kind) {
  switch (kind) {
    case OpKind::kAlloc:
      return "kAlloc";
    case OpKind::kFree:
      return "kFree";
    case OpKind::kRecordStream:
      return "kRecordStream";
    case OpKind::kFinishStream:
      return "kFinishStream";
    case OpKind::kFinishAll:
      return "kFinishAll";
    case OpKind::kEmptyCache:
      return "kEmptyCache";
    case OpKind::kReleasePool:
      return "kReleasePool";
    case OpKind::kKeepPool:
      return "kKeepPool";
    case OpKind::kPutBackPool:
      return "kPutBackPool";
    case OpKind::kConfigurePool:
      return "kConfigurePool";
  }
  return "?";
}

std::string ToCpp(const Op& op) {
  std::string text = absl::StrCat("    {.kind = OpKind::", NameOf(op.kind));
  const auto add = [&text](const char* name, std::uint64_t value) {
    if (value != 0) absl::StrAppend(&text, ", .", name, " = ", value);
  };
  add("id", op.id);
  add("bytes", op.bytes);
  add("stream", op.stream);
  add("pool", op.pool);
  return text + "},\n";
}

}  // namespace

policy::Options Program::Options() const {
  absl::StatusOr<policy::Options> options = policy::ParseConf(conf, compat, policy::Keys::kAshlar);
  ASHLAR_CHECK(options.ok());
  return *std::move(options);
}

std::string ToCpp(const Program& program) {
  std::string text = "Program program{.compat = *policy::ParseCompat(\"";
  absl::StrAppend(&text, policy::CompatName(program.compat), "\"), .conf = \"", program.conf,
                  "\", .capacity_bytes = ", program.capacity_bytes);
  if (program.address_order == device::AddressOrder::kDescending) {
    absl::StrAppend(&text, ", .address_order = device::AddressOrder::kDescending");
  }
  if (program.memory_fraction) absl::StrAppend(&text, ", .memory_fraction = ", *program.memory_fraction);
  absl::StrAppend(&text, "};\nprogram.ops = {\n");
  for (const Op& op : program.ops) absl::StrAppend(&text, ToCpp(op));
  return text + "};\n";
}

Recording Record(const Program& program) { return Runner(program).Run(); }

trace::Snapshot MakeSnapshot(const Recording& recording, const SnapshotShape& shape) {
  trace::Snapshot snapshot;
  snapshot.segments = recording.segments;
  for (trace::SnapshotSegment& segment : snapshot.segments) segment.device = shape.device;
  snapshot.device_traces.resize(static_cast<std::size_t>(shape.device) + 1);
  std::vector<trace::Event>& events = snapshot.device_traces.back().Mutable();
  const std::size_t count = std::min(shape.window, recording.events.size());
  events.assign(recording.events.end() - static_cast<std::ptrdiff_t>(count), recording.events.end());
  for (trace::Event& event : events) {
    if (!shape.has_pool_ids) event.pool.reset();
  }
  snapshot.traits.has_requested_bytes = true;
  snapshot.traits.has_pool_ids = shape.has_pool_ids;
  return snapshot;
}

}  // namespace ashlar::replay
