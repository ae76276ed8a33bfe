// Makes the picture of one run from its timeline.
//
//   PicturedRun made = PictureOfRun(timeline, {.most_moments = 100'000, .most_blocks = 50'000});
//
// Stacks stay those of the trace (trace::StackId) until a PictureMaker numbers them anew. Pure functions.
#ifndef ASHLAR_COMMANDS_EXPLAIN_PICTURE_RUN_PICTURE_H_
#define ASHLAR_COMMANDS_EXPLAIN_PICTURE_RUN_PICTURE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "allocator/trace/snapshot.h"
#include "allocator/trace/stack_table.h"
#include "analyzer/timeline/timeline.h"
#include "commands/explain/picture/picture.h"

namespace ashlar::answers {

// What of a run only its maker knows.
struct RunFacts {
  std::size_t most_moments = 0;
  std::size_t most_blocks = 0;
  std::vector<timeline::EventIndex> pointed_at = {};  // events that must be moments
  // The place of an event of the run on the axis that the runs share; without the function it is the event's number.
  std::function<std::int64_t(timeline::EventIndex)> place_of = {};
  // The time of an event, kNoTime where none is told; without the function the timeline's own events have it.
  std::function<std::int64_t(timeline::EventIndex)> time_of = {};
  // The text of a block by the event that allocated it; without the function no block has one.
  std::function<std::uint32_t(timeline::EventIndex)> text_of = {};
};

struct PicturedRun {
  RunPicture run;
  std::vector<std::uint32_t> block_sources;  // index in Timeline::blocks() of each block
};

PicturedRun PictureOfRun(const timeline::Timeline& timeline, const RunFacts& facts);

// Chooses the moments of a run that a picture keeps.
//
//   const std::vector<timeline::EventIndex> events = ChooseMoments(timeline, 100'000, {failed_event});
//   const MomentTable moments(events, timeline.event_count());
//   moments.Since(block.alloc_event);   // the first moment at which the block is there
//
// Values, safe from any thread.

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

// The texts that the program put on blocks (trace::LabelTable), one for each block that has any: the last annotation
// put on it while it lived, else the thread's metadata when it was allocated, else the allocator's own mark.
//
//   const BlockTexts texts(timeline, snapshot.labels);
//   texts.texts()[texts.TextOf(block.alloc_event)];   // "the first activation"
//
// Immutable; safe from any thread.
class BlockTexts {
 public:
  BlockTexts() = default;
  BlockTexts(const timeline::Timeline& timeline, const trace::LabelTable& labels);

  const std::vector<std::string>& texts() const { return texts_; }
  // Index in texts() of the block that this event allocated; kNoText where it has none.
  std::uint32_t TextOf(timeline::EventIndex alloc_event) const;

 private:
  void Put(timeline::EventIndex alloc_event, const std::string& text);

  std::vector<std::string> texts_;
  absl::flat_hash_map<std::string, std::uint32_t> numbers_;
  absl::flat_hash_map<timeline::EventIndex, std::uint32_t> text_of_;  // by the allocation's event
};

// Draws the pinned memory of the host that a snapshot records beside the device's.

// nullopt where there is none. Where its events do not lead to its segments, those alone are drawn: one moment.
std::optional<RunPicture> PictureOfHost(const trace::Snapshot& snapshot, const PictureLimits& limits);

}  // namespace ashlar::answers

#endif  // ASHLAR_COMMANDS_EXPLAIN_PICTURE_RUN_PICTURE_H_
