// A small recorded run: an allocator over a simulated device whose decisions and final state become a snapshot, as a
// program with PyTorch's recorder on would dump it.
//
//   Recording run("expandable_segments:True", 1 * kGiB);
//   core::Block* a = run.Allocate(20 * kMiB);
//   run.Free(a);
//   trace::Snapshot snapshot = run.Finish();
#ifndef ASHLAR_TESTS_COMMANDS_RECORDING_H_
#define ASHLAR_TESTS_COMMANDS_RECORDING_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "allocator/core/caching_allocator.h"
#include "allocator/device/sim_device.h"
#include "allocator/trace/snapshot.h"

namespace ashlar::tests {

class Recording final : public trace::EventSink {
 public:
  Recording(const std::string& conf, std::uint64_t capacity_bytes)
      : conf_(conf),
        device_(DeviceOptions(capacity_bytes)),
        allocator_(&device_, *policy::ParseConf(conf, policy::Compat::kTorch210)) {
    allocator_.SetSink(this);
  }

  // nullptr when it ran out of memory.
  core::Block* Allocate(std::uint64_t bytes, Stream stream = {}, PoolId pool = {}) {
    absl::StatusOr<core::Block*> block = allocator_.Allocate(bytes, stream, pool);
    return block.ok() ? *block : nullptr;
  }
  void Free(core::Block* block) { allocator_.Free(block); }
  void ForgetEvents() { events_.clear(); }
  core::CachingAllocator& allocator() { return allocator_; }

  void OnEvent(const trace::Event& event, std::uint64_t) override {
    trace::Event timed = event;
    timed.time_us = 1'000'000 + static_cast<std::int64_t>(events_.size());
    timed.pool.reset();
    events_.push_back(timed);
  }

  trace::Snapshot Finish() {
    trace::Snapshot out;
    out.segments = allocator_.Segments();
    out.device_traces.push_back(events_);
    trace::RecordedSettings& settings = out.settings.emplace();
    settings.conf = conf_;
    const bool is_expandable = conf_.find("expandable_segments:True") != std::string::npos;
    settings.expandable_segments = is_expandable;
    settings.values = {{"PYTORCH_CUDA_ALLOC_CONF", conf_},
                       {"expandable_segments", is_expandable ? "True" : "False"},
                       {"garbage_collection_threshold", "0.0"},
                       {"max_split_size", "-1"}};
    out.traits.has_time = out.traits.has_requested_bytes = out.traits.has_settings = true;
    return out;
  }

 private:
  static device::SimDeviceOptions DeviceOptions(std::uint64_t capacity_bytes) {
    device::SimDeviceOptions out;
    out.capacity_bytes = capacity_bytes;
    return out;
  }

  std::string conf_;
  device::SimDevice device_;
  core::CachingAllocator allocator_;
  std::vector<trace::Event> events_;
};

// The events and segments of `one` as those of `device` of `all`.
inline void AddDevice(const trace::Snapshot& one, int device, trace::Snapshot& all) {
  for (trace::SnapshotSegment segment : one.segments) {
    segment.device = device;
    all.segments.push_back(segment);
  }
  all.device_traces.resize(static_cast<std::size_t>(device) + 1);
  all.device_traces.back() = one.device_traces[0];
}

}  // namespace ashlar::tests

#endif  // ASHLAR_TESTS_COMMANDS_RECORDING_H_
