// Makes the picture of one run from its timeline.
//
//   PicturedRun made = PictureOfRun(timeline, {.most_moments = 100'000});
//
// Stacks stay those of the trace (trace::StackId) until a PictureMaker numbers them anew. Pure functions.
#ifndef ASHLAR_ANALYZER_ANSWERS_PICTURE_RUN_PICTURE_H_
#define ASHLAR_ANALYZER_ANSWERS_PICTURE_RUN_PICTURE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "analyzer/answers/picture/picture.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::answers {

// What of a run only its maker knows.
struct RunFacts {
  std::size_t most_moments = 0;
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

}  // namespace ashlar::answers

#endif  // ASHLAR_ANALYZER_ANSWERS_PICTURE_RUN_PICTURE_H_
