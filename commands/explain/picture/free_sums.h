// The free bytes of a run over time, by where they lie. After each event they are what the accounting of the state
// would say (allocator/core/accounting.h), at the cost of one step an event.
//
//   FreeSums sums(timeline);
//   sums.AdvanceTo(timeline.allocated_peak().event);
//   sums.stranded_bytes();
//
// Goes forwards only. The timeline must outlive it. Not thread-safe.
#ifndef ASHLAR_COMMANDS_EXPLAIN_PICTURE_FREE_SUMS_H_
#define ASHLAR_COMMANDS_EXPLAIN_PICTURE_FREE_SUMS_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::answers {

class FreeSums {
 public:
  // Stands before the first event.
  explicit FreeSums(const timeline::Timeline& timeline);

  // To the state after `event`, which is not before the present one.
  void AdvanceTo(timeline::EventIndex event);

  // Free bytes of segments in use, in the default pool.
  std::uint64_t stranded_bytes() const { return stranded_bytes_; }
  // Free bytes of private pools.
  std::uint64_t private_free_bytes() const { return private_free_bytes_; }
  // Live blocks whose request the trace does not say.
  std::uint64_t unknown_requests() const { return unknown_requests_; }

 private:
  struct Use {
    std::uint64_t size_bytes = 0;  // of the segment; 0 while it does not exist
    std::uint64_t used_bytes = 0;
    std::uint64_t blocks = 0;
  };

  void Start();
  void NoteEvents();
  void Step(timeline::EventIndex event);
  void ChangeSegments(timeline::EventIndex event);
  void Enter(std::uint32_t block);
  void Leave(std::uint32_t block);
  void Move(std::uint32_t segment, timeline::SegmentExtent range);
  std::uint64_t& SumOf(std::uint32_t segment);
  void Add(std::uint32_t segment);
  void Remove(std::uint32_t segment);

  const timeline::Timeline& timeline_;
  timeline::EventIndex now_ = timeline::kBeforeWindow;
  std::vector<std::uint32_t> block_of_event_;                                    // what an event is about
  std::vector<std::pair<timeline::EventIndex, std::uint32_t>> segment_changes_;  // by event
  std::size_t next_change_ = 0;
  std::vector<Use> uses_;                                  // of each segment
  std::vector<std::uint32_t> homes_;                       // the segment of each block, now
  absl::btree_map<std::uint64_t, std::uint32_t> movable_;  // blocks in use in expandable segments, by address
  std::uint64_t stranded_bytes_ = 0;
  std::uint64_t private_free_bytes_ = 0;
  std::uint64_t whole_free_bytes_ = 0;
  std::uint64_t unknown_requests_ = 0;
};

}  // namespace ashlar::answers

#endif  // ASHLAR_COMMANDS_EXPLAIN_PICTURE_FREE_SUMS_H_
