// Which block of a timeline an event is about, walking forwards: spans stand in order of allocation, so it takes no
// search.
//
//   BlockOfEvent blocks(timeline);
//   for (const trace::Event& event : timeline.events()) {
//     const timeline::BlockSpan* block = blocks.Next(event);   // nullptr: an event of a segment, a failure
//   }
#ifndef ASHLAR_ANALYZER_EXPORTS_BLOCK_OF_EVENT_H_
#define ASHLAR_ANALYZER_EXPORTS_BLOCK_OF_EVENT_H_

#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::exports {

class BlockOfEvent {
 public:
  explicit BlockOfEvent(const timeline::Timeline& timeline) : timeline_(timeline) {
    while (next_ < timeline.blocks().size() && timeline.blocks()[next_].alloc_event == timeline::kBeforeWindow) {
      at_.emplace(timeline.blocks()[next_].address, next_);
      ++next_;
    }
  }

  const timeline::BlockSpan* Next(const trace::Event& event) {
    switch (event.action) {
      case trace::Action::kAlloc:
        at_[event.address] = next_;
        return &timeline_.blocks()[next_++];
      case trace::Action::kFreeRequested:
      case trace::Action::kFreeCompleted:
      case trace::Action::kAnnotate: {
        const auto known = at_.find(event.address);
        if (known == at_.end()) return nullptr;
        const timeline::BlockSpan* const block = &timeline_.blocks()[known->second];
        if (event.action == trace::Action::kFreeCompleted) at_.erase(known);
        return block;
      }
      default:
        return nullptr;
    }
  }

 private:
  const timeline::Timeline& timeline_;
  std::size_t next_ = 0;
  absl::flat_hash_map<std::uint64_t, std::size_t> at_;  // blocks in use, by address
};

}  // namespace ashlar::exports

#endif  // ASHLAR_ANALYZER_EXPORTS_BLOCK_OF_EVENT_H_
