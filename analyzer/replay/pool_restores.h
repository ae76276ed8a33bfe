// Finds where a record shows that a private pool was put back into an earlier state, as CUDA graph trees do before they
// record another branch. PyTorch then asks for every block of a segment, those that were free among them, one right
// after the other from its first byte to its last, and frees the latter at once:
//
//   segment 0x10.., 4 MiB    alloc 0x10.. 1 MiB, alloc 0x11.. 2 MiB, alloc 0x13.. 1 MiB, free 0x11..
//                            0x10.. and 0x13.. are live again, 2 MiB between them are free
//
// None of these requests was searched for: each stands where the earlier state had it.
#ifndef ASHLAR_ANALYZER_REPLAY_POOL_RESTORES_H_
#define ASHLAR_ANALYZER_REPLAY_POOL_RESTORES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "allocator/trace/event.h"
#include "analyzer/timeline/start_state.h"

namespace ashlar::replay {

// The ranges of memory that segments had, event by event.
class SegmentRanges {
 public:
  explicit SegmentRanges(const timeline::StartState& start);
  void Apply(const trace::Event& event);
  // Of the range that begins there; 0: none does.
  std::uint64_t EndOf(std::uint64_t begin) const;

 private:
  void Add(std::uint64_t begin, std::uint64_t end, bool joins);
  void Remove(std::uint64_t begin, std::uint64_t end);

  std::map<std::uint64_t, std::uint64_t> ends_;  // begin -> end; those that touch and can grow are one
};

// Events from `begin` to `end` that look like this, segment after segment.
struct PutBackRun {
  std::size_t begin = 0, end = 0;
  bool is_certain = false;         // else each is one live block: a request for a whole segment looks like that as well
  std::vector<bool> is_free = {};  // of each event: an allocation that stands for free memory

  bool Holds(std::size_t event) const { return is_certain && event < end; }
};

PutBackRun FindPutBack(const std::vector<trace::Event>& events, std::size_t begin, const SegmentRanges& ranges);

}  // namespace ashlar::replay

#endif  // ASHLAR_ANALYZER_REPLAY_POOL_RESTORES_H_
