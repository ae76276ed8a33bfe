// A sink receives an allocator's decisions as they are made.
//
// OnEvent and OnFact must not throw. They are called in the middle of a decision that cannot be taken back: memory was
// obtained or returned, and the sink was told of the steps before. What one throws ends the program with one line that
// says what it was. A sink that runs code of others, or may run out of memory, catches what that throws and records no
// more, as core::Recorder does.
#ifndef ASHLAR_ALLOCATOR_TRACE_SINK_H_
#define ASHLAR_ALLOCATOR_TRACE_SINK_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "allocator/trace/event.h"
#include "allocator/trace/fact.h"

namespace ashlar::trace {

struct Snapshot;

// Pages of an address that stays: a pool that falls asleep gives them back to the device, and has others at its wake.
struct PagesOfSleep {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  Stream stream{};
  PoolId pool;
  bool are_there = false;
};

class EventSink {
 public:
  virtual ~EventSink() = default;
  // `block_size_bytes`: what the block spans, for kAlloc and kFree*; 0 otherwise.
  virtual void OnEvent(const Event& event, std::uint64_t block_size_bytes) = 0;
  // What lay between two decisions.
  virtual void OnFact(const AnyFact& /*fact*/) {}
  // Told to an observer (CachingAllocator::SetObserver): no decision, and in no recording.
  virtual void OnPages(const PagesOfSleep& /*pages*/) {}
  // In a child that fork made, before anything else there. False: what it writes is its parent's, and it takes no more.
  virtual bool OnFork() { return true; }
  // Where the live block at `address` was allocated, innermost first ("layer < forward"); empty: not known. Asked as
  // WriteKept is.
  virtual std::string PlaceOf(std::uint64_t /*address*/) const { return {}; }
  // Gives the live blocks of the allocator's state the stacks that they were allocated under, with the table they are
  // of, as far as the sink saw it. Asked as WriteKept is.
  virtual void NameBlocks(Snapshot& /*state*/) const {}
  // Into a file: what the sink has kept of the last events, with the state as it is. Asked when a request has failed,
  // while the allocator stands still. nullopt: it keeps none.
  virtual std::optional<absl::Status> WriteKept(const std::string& /*path*/) { return std::nullopt; }
};

}  // namespace ashlar::trace

#endif  // ASHLAR_ALLOCATOR_TRACE_SINK_H_
