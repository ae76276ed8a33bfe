// The segments that a state has become after a list of events: what a recording that was cut off does not say itself.
//
//   start  | live 512 |    free 1536    |   + alloc 1024 at +512     =   | live 512 | live 1024 | free 512 |
//
// The size class of an expandable range that was mapped since is that of the first block in it; of one that never held
// a block, by its size: a multiple of 20 MiB is large.
#ifndef ASHLAR_ALLOCATOR_TRACE_STATE_AFTER_H_
#define ASHLAR_ALLOCATOR_TRACE_STATE_AFTER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "allocator/trace/event.h"
#include "allocator/trace/snapshot.h"

namespace ashlar::trace {

// DataLoss where two segments of a device overlap, or blocks do not tile theirs. Sorts by device and address.
absl::Status CheckSegments(std::vector<SnapshotSegment>& segments);

class DevicePicture;

// The state after events that come in parts. `start` and errors as below.
class StateSteps {
 public:
  explicit StateSteps(const std::vector<SnapshotSegment>& start);
  ~StateSteps();
  StateSteps(StateSteps&&) noexcept;
  StateSteps& operator=(StateSteps&&) noexcept;

  // Those of a device that follow; `first`: how many of it came before, for messages.
  absl::Status Apply(std::size_t device, absl::Span<const Event> events, std::uint64_t first);
  // Leaves nothing.
  void Finish(std::vector<SnapshotSegment>& out);

 private:
  std::map<int, std::unique_ptr<DevicePicture>> pictures_;
};

// `traces`: index = device. `start` is checked, events know their block sizes. FailedPrecondition names the first event
// that cannot be: it frees what is not live, or allocates where something is.
absl::Status StateAfter(const std::vector<SnapshotSegment>& start, absl::Span<const EventList> traces,
                        std::vector<SnapshotSegment>& out);

// Gives each live or pending block without a stack the one of the last event that made a block there.
void FillBlockStacks(absl::Span<const EventList> traces, std::vector<SnapshotSegment>& segments);

}  // namespace ashlar::trace

#endif  // ASHLAR_ALLOCATOR_TRACE_STATE_AFTER_H_
