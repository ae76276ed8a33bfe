// Frees of blocks that other streams use, while a graph is captured. No event may be recorded then, so each waits for
// the end of the capture; or, with graph_capture_record_stream_reuse, until the graph itself says that all uses come
// before whatever the block's own stream is given next:
//
//   own    --A----------------join--B-->     the block was used by A and, on the other stream, by X, and freed then:
//   other    \--X--------------/            its uses end at A and X. At B the graph has both before B: it is free.
//
//   CapturedFrees frees(device);
//   frees.Add(block, streams, true);
//   frees.CompleteOn(stream, [](policy::Block* block) { ... });   // those that the graph now proves done
//   for (const CapturedFree& free : frees.TakeAll()) ...          // no graph is captured any more
//
// A stream's place in the graph only moves on, so what was found to come before it is kept; where it was set elsewhere,
// all is looked at again. Thread rule: not thread-safe; the allocator's exclusive section guards it.
#ifndef ASHLAR_ALLOCATOR_CORE_CAPTURED_FREES_H_
#define ASHLAR_ALLOCATOR_CORE_CAPTURED_FREES_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "allocator/base/units.h"
#include "allocator/core/pending_frees.h"
#include "allocator/device/device.h"
#include "allocator/policy/block.h"

namespace ashlar::core {

struct CapturedFree {
  policy::Block* block = nullptr;
  StreamList streams;              // besides its own
  device::CapturePoint last_uses;  // no nodes: it waits for the end of the capture
};

class CapturedFrees {
 public:
  // The device outlives this.
  explicit CapturedFrees(device::Device& device) : device_(device) {}

  // `asks_graph`: where a stream is not captured, or by another capture, it waits for the end all the same.
  void Add(policy::Block* block, StreamList streams, bool asks_graph);

  // Calls `finished(block)` for each block of the stream whose uses all come before what the stream is given next.
  template <typename Finished>
  void CompleteOn(Stream stream, Finished finished) {
    if (std::none_of(waiting_.begin(), waiting_.end(), [&](const auto& free) { return MayComplete(free, stream); }))
      return;
    const Past* past = PastOf(stream);
    if (past == nullptr) return;
    const auto is_done = [&](const CapturedFree& free) {
      if (!MayComplete(free, stream) || !past->Holds(free.last_uses)) return false;
      finished(free.block);
      return true;
    };
    waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(), is_done), waiting_.end());
  }

  // What still waits, oldest first.
  std::vector<CapturedFree> TakeAll() {
    pasts_.clear();
    return std::exchange(waiting_, {});
  }

 private:
  // What comes before the next work of a stream, in the graph that is captured from it.
  struct Past {
    std::uint64_t capture = 0;
    std::vector<std::uint64_t> ends;  // where the stream stood when it was asked last
    absl::flat_hash_set<std::uint64_t> nodes;

    bool Holds(const device::CapturePoint& uses) const {
      return uses.capture == capture && std::all_of(uses.nodes.begin(), uses.nodes.end(),
                                                    [&](std::uint64_t node) { return nodes.contains(node); });
    }
  };

  static bool MayComplete(const CapturedFree& free, Stream stream);
  device::CapturePoint LastUses(Stream own, const StreamList& others);
  // nullptr: the device does not tell.
  const Past* PastOf(Stream stream);
  // False: the device does not tell, or what was known is not all before the point.
  bool Advance(Past& past, const device::CapturePoint& point);

  device::Device& device_;
  std::vector<CapturedFree> waiting_;
  std::map<std::uint64_t, Past> pasts_;  // by stream handle
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_CAPTURED_FREES_H_
