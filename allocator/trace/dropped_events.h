// The events of a recording that are dropped as it is read, as only the last may be held (trace_tail.h), and what those
// that are held need of them: what blocks span that are freed later, and the stacks of those that stay; the limit and
// the pools that stand then; where it is asked for, the state that they lead to. Private to the codec.
//
//   DroppedEvents dropped(/*max_events=*/1000, /*keeps_state=*/false);
//   dropped.Drop(device, /*is_end=*/false, &start, events, facts);   // after each chunk
//   dropped.Drop(device, /*is_end=*/true, &start, events, facts);
//   dropped.Describe(snapshot);                                      // its segments are there
//
// It takes what is alive takes, however many are dropped. Not thread-safe.
#ifndef ASHLAR_ALLOCATOR_TRACE_DROPPED_EVENTS_H_
#define ASHLAR_ALLOCATOR_TRACE_DROPPED_EVENTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "allocator/trace/event.h"
#include "allocator/trace/fact.h"
#include "allocator/trace/snapshot.h"
#include "allocator/trace/state_after.h"
#include "allocator/trace/trace_tail.h"

namespace ashlar::trace::codec {

class DroppedEvents {
 public:
  explicit DroppedEvents(std::uint64_t max_events = 0, bool keeps_state = false)
      : max_events_(max_events), keeps_state_(keeps_state) {}

  // Where the recording begins; before the first event is dropped.
  void SetLargePages(const std::vector<LargePage>& pages);
  // The oldest events of a device, where there are too many, and the facts between them. `start`: the segments before
  // the first event, the same each time; nullptr: not known.
  void Drop(std::size_t device, bool is_end, const std::vector<SnapshotSegment>* start, EventList& events,
            std::vector<Fact>& facts);

  std::uint64_t count() const;  // of all devices
  bool keeps_state() const { return keeps_state_; }

  // The state after them and those that are held, where it is kept. Errors are StateAfter's.
  absl::Status StateAfter(const std::vector<SnapshotSegment>& start, absl::Span<const EventList> held,
                          std::vector<SnapshotSegment>& out);
  // Stacks of blocks that no event made which is held.
  void FillBlockStacks(std::vector<SnapshotSegment>& segments) const;
  // That the recording begins later, and which facts stand then.
  void Describe(RecordingInfo& recording) const;
  // Windows and notes.
  void Describe(Snapshot& snapshot) const;

 private:
  // A block that a dropped event made.
  struct Older {
    StackId stack = kNoStack;
    std::uint64_t size_bytes = 0;
  };
  struct Device {
    TraceTail tail;
    absl::flat_hash_map<std::uint64_t, Older> blocks = {};  // by address, while they are there
  };
  void Note(Device& of, absl::Span<const Event> dropped);
  static void TellSizes(Device& of, std::vector<Event>& held);
  void DropFacts(absl::Span<const Event> dropped, std::vector<Fact>& facts);
  void DropPages(absl::Span<const Event> dropped, absl::Span<const Fact> facts);
  void DropWaits(absl::Span<const Event> dropped, absl::Span<const Fact> facts);
  void Stand(const AnyFact& dropped);

  std::uint64_t max_events_;
  bool keeps_state_;
  std::vector<Device> devices_;  // index = device
  // Facts that stand until another is told of the same.
  std::optional<fact::LimitSet> limit_;
  std::optional<fact::SettingsChanged> settings_;
  std::optional<fact::WaitsOwed> waits_;
  struct Pool {
    std::optional<fact::PoolUsers> users = {};
    std::optional<fact::PoolConfigured> traits = {};
    std::optional<fact::PoolTagged> tagged = {};
  };
  std::map<PoolId, Pool> pools_;
  std::set<PoolId> asleep_;
  std::vector<fact::RangeRegistered> registered_;       // in the order in which they came
  std::vector<fact::PoolBegun> begun_;                  // and not ended, in order
  std::map<std::uint64_t, std::uint64_t> large_pages_;  // sizes by address
  std::optional<StateSteps> state_;
  absl::Status status_;
};

}  // namespace ashlar::trace::codec

#endif  // ASHLAR_ALLOCATOR_TRACE_DROPPED_EVENTS_H_
