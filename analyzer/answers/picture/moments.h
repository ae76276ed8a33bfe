// Chooses the moments of a run that a picture keeps.
//
//   const std::vector<timeline::EventIndex> events = ChooseMoments(timeline, 100'000, {failed_event});
//   const MomentTable moments(events, timeline.event_count());
//   moments.Since(block.alloc_event);   // the first moment at which the block is there
//
// Values, safe from any thread.
#ifndef ASHLAR_ANALYZER_ANSWERS_PICTURE_MOMENTS_H_
#define ASHLAR_ANALYZER_ANSWERS_PICTURE_MOMENTS_H_

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "analyzer/answers/picture/picture.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::answers {

// The events after which the moments stand, ascending, kBeforeWindow first. All, where there are no more than `most`;
// else the first, the last, `pointed_at`, the failures, the peaks, and of each of equally long stretches of events
// those after which allocated and reserved memory are highest and lowest: about `most` in all, more where there are
// more to point at.
std::vector<timeline::EventIndex> ChooseMoments(const timeline::Timeline& timeline, std::size_t most,
                                                absl::Span<const timeline::EventIndex> pointed_at);

class MomentTable {
 public:
  MomentTable(absl::Span<const timeline::EventIndex> events, timeline::EventIndex event_count);

  // The first moment that stands at or after an event; the count of moments where none does.
  Moment Since(timeline::EventIndex event) const {
    return event < static_cast<timeline::EventIndex>(since_.size()) - 1 ? since_[static_cast<std::size_t>(event + 1)]
                                                                        : count_;
  }
  Moment count() const { return count_; }

 private:
  Moment count_ = 0;
  std::vector<Moment> since_;  // of kBeforeWindow and each event
};

}  // namespace ashlar::answers

#endif  // ASHLAR_ANALYZER_ANSWERS_PICTURE_MOMENTS_H_
