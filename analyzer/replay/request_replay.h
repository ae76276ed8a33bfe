// Replays a list of requests through the allocator over a simulated device.
//
//   RequestReplay replay({.policy = options, .device = {.capacity_bytes = 16 * kGiB}});
//   absl::Status status = replay.Run(trace);        // out of memory is a result, not an error
//   replay.allocator().stats().reserved_bytes.all().peak
//
// An allocation that runs out of memory kills its id: later requests on it are ignored. So are requests for a pool that
// could not be woken. kEmptyCache with another pool than the first empties that one alone. A block that was put back
// (trace::PutBack) stands where the earlier one stood in this replay, if that is free.
#ifndef ASHLAR_ANALYZER_REPLAY_REQUEST_REPLAY_H_
#define ASHLAR_ANALYZER_REPLAY_REQUEST_REPLAY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/device/sim_device.h"
#include "allocator/trace/request.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/replay/op_sink.h"

namespace ashlar::replay {

// The memory of a device that never runs out, in bytes: what is simulated where a capacity is not known.

// A recording on such a device names it as the device's total: a reader takes that total as not known.
inline constexpr std::uint64_t kAmpleBytes = std::uint64_t{1} << 46;

struct RequestReplayOptions {
  policy::Options policy;
  device::SimDeviceOptions device;
  std::optional<double> memory_fraction;  // as if set right after construction
};

class RequestReplay {
 public:
  explicit RequestReplay(RequestReplayOptions options);

  // Any error but out of memory ends the replay, with the op's number in the message. `sink` may be nullptr.
  absl::Status Run(const trace::RequestTrace& trace, OpSink* sink = nullptr);
  // The requests in [begin, end) of a trace whose earlier ones have been run, with the same sink.
  absl::Status RunPart(const trace::RequestTrace& trace, std::size_t begin, std::size_t end, OpSink* sink = nullptr);
  // Whether the block of an id was allocated, and not freed.
  bool IsLive(std::uint32_t id) const { return id < blocks_.size() && blocks_[id] != nullptr; }
  // Wakes that found no memory: each is a failure of the program, as a failed request is.
  std::uint64_t failed_wakes() const { return failed_wakes_; }

  const core::CachingAllocator& allocator() const { return allocator_; }
  const device::SimDevice& device() const { return device_; }

 private:
  absl::Status Step(const trace::Op& request, const trace::RequestTrace& trace);
  absl::Status Allocate(const trace::Op& request, const trace::RequestTrace& trace);
  // Of an id that was put back; nullopt: it is served as any other.
  std::optional<core::Block*> PutBack(std::uint32_t id, const trace::RequestTrace& trace);
  absl::Status EmptyPool(PoolId pool);
  absl::Status Wake(PoolId pool);

  device::SimDevice device_;
  core::CachingAllocator allocator_;
  absl::Status setup_;
  std::vector<core::Block*> blocks_;  // by id; nullptr = not live
  std::uint64_t failed_wakes_ = 0;
  absl::flat_hash_map<std::uint32_t, policy::AddressRange>
      places_;  // of blocks in private pools, where one is put back
};

// A list of requests, run through the allocator and recorded: what a recorder of the live program would have written.

// From an empty allocator, without times. Out of memory is an event, not an error.
absl::StatusOr<trace::Snapshot> RecordRequests(const trace::RequestTrace& requests, RequestReplayOptions options);

}  // namespace ashlar::replay

#endif  // ASHLAR_ANALYZER_REPLAY_REQUEST_REPLAY_H_
