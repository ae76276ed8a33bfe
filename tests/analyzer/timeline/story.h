// Words to write a small snapshot down as a story: what happened, and how it stood in the end.
//
//   Story story;
//   story.Segment({.address = kA, .size_bytes = 2 * kMiB, .is_small_pool = true}, {Live(kA, 512)});
//   story.Then(Alloc(kA, 100));
//   MakeObservedTimeline({story.snapshot, 0}, TorchRule());
#ifndef ASHLAR_TESTS_ANALYZER_TIMELINE_STORY_H_
#define ASHLAR_TESTS_ANALYZER_TIMELINE_STORY_H_

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "allocator/trace/event.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/timeline/block_size_rule.h"

namespace ashlar::timeline {

// PyTorch's rounding without power-of-two divisions, written down a second time.
inline BlockSizeRule TorchRule() {
  BlockSizeRule rule;
  rule.rounded_bytes = [](std::uint64_t bytes) { return bytes < 512 ? 512 : (bytes + 511) / 512 * 512; };
  return rule;
}

inline trace::Event MakeEvent(trace::Action action, std::uint64_t address, std::uint64_t size_bytes,
                              std::uint64_t stream = 0) {
  trace::Event event;
  event.action = action;
  event.address = address;
  event.size_bytes = size_bytes;
  event.stream = Stream{stream};
  return event;
}

inline trace::Event Alloc(std::uint64_t address, std::uint64_t bytes) {
  return MakeEvent(trace::Action::kAlloc, address, bytes);
}
inline trace::Event FreeRequested(std::uint64_t address, std::uint64_t bytes) {
  return MakeEvent(trace::Action::kFreeRequested, address, bytes);
}
inline trace::Event FreeCompleted(std::uint64_t address, std::uint64_t bytes) {
  return MakeEvent(trace::Action::kFreeCompleted, address, bytes);
}
inline trace::Event SegmentAlloc(std::uint64_t address, std::uint64_t bytes) {
  return MakeEvent(trace::Action::kSegmentAlloc, address, bytes);
}
inline trace::Event SegmentFree(std::uint64_t address, std::uint64_t bytes) {
  return MakeEvent(trace::Action::kSegmentFree, address, bytes);
}
inline trace::Event Map(std::uint64_t address, std::uint64_t bytes) {
  return MakeEvent(trace::Action::kSegmentMap, address, bytes);
}
inline trace::Event Unmap(std::uint64_t address, std::uint64_t bytes) {
  return MakeEvent(trace::Action::kSegmentUnmap, address, bytes);
}

inline trace::SnapshotBlock MakeBlock(trace::BlockState state, std::uint64_t address, std::uint64_t size_bytes,
                                      std::uint64_t requested_bytes) {
  trace::SnapshotBlock block;
  block.address = address;
  block.size_bytes = size_bytes;
  block.requested_bytes = requested_bytes;
  block.state = state;
  return block;
}
inline trace::SnapshotBlock Live(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t requested_bytes) {
  return MakeBlock(trace::BlockState::kLive, address, size_bytes, requested_bytes);
}
inline trace::SnapshotBlock Pending(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t requested_bytes) {
  return MakeBlock(trace::BlockState::kPending, address, size_bytes, requested_bytes);
}

struct Story {
  trace::Snapshot snapshot;

  // A final segment and its occupied blocks, ascending; the gaps become free blocks with a stale request.
  trace::SnapshotSegment& Segment(std::uint64_t address, std::uint64_t size_bytes, bool is_small_pool,
                                  std::initializer_list<trace::SnapshotBlock> occupied = {}) {
    trace::SnapshotSegment segment;
    segment.address = address;
    segment.size_bytes = size_bytes;
    segment.is_small_pool = is_small_pool;
    std::uint64_t from = address;
    const auto fill_gap = [&segment, &from](std::uint64_t to) {
      if (to > from) segment.blocks.push_back(MakeBlock(trace::BlockState::kFree, from, to - from, 99 * kGiB));
    };
    for (const trace::SnapshotBlock& block : occupied) {
      fill_gap(block.address);
      segment.blocks.push_back(block);
      from = block.address + block.size_bytes;
    }
    fill_gap(address + size_bytes);
    snapshot.segments.push_back(segment);
    return snapshot.segments.back();
  }

  void Then(std::initializer_list<trace::Event> events, std::size_t device = 0) {
    snapshot.device_traces.resize(std::max(snapshot.device_traces.size(), device + 1));
    for (const trace::Event& event : events) snapshot.device_traces[device].push_back(event);
  }
};

}  // namespace ashlar::timeline

#endif  // ASHLAR_TESTS_ANALYZER_TIMELINE_STORY_H_
