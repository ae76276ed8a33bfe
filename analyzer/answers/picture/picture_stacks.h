// Numbers the stacks that a picture's blocks and segments name anew, from 0 and in the order in which they are met, and
// takes over their labels and frames.
//
//   PictureStacks stacks(&snapshot.stacks);
//   for (BlockPicture& block : run.blocks) block.stack = stacks.Number(block.stack);
//   stacks.MoveTo(picture);
//
// Not thread-safe.
#ifndef ASHLAR_ANALYZER_ANSWERS_PICTURE_PICTURE_STACKS_H_
#define ASHLAR_ANALYZER_ANSWERS_PICTURE_PICTURE_STACKS_H_

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "allocator/trace/stack_table.h"
#include "analyzer/answers/picture/picture.h"

namespace ashlar::answers {

class PictureStacks {
 public:
  // nullptr: the trace has none. Must outlive it.
  explicit PictureStacks(const trace::StackTable* table) : table_(table) {}

  // kNoStack stays.
  std::uint32_t Number(trace::StackId stack);
  // Of all blocks and segments of a run.
  void Renumber(RunPicture& run);
  void MoveTo(Picture& picture);

 private:
  std::uint32_t NumberOfFrame(trace::FrameId frame);

  const trace::StackTable* table_;
  absl::flat_hash_map<trace::StackId, std::uint32_t> numbers_;
  absl::flat_hash_map<trace::FrameId, std::uint32_t> frame_numbers_;
  std::vector<StackPicture> stacks_;
  std::vector<trace::Frame> frames_;
};

}  // namespace ashlar::answers

#endif  // ASHLAR_ANALYZER_ANSWERS_PICTURE_PICTURE_STACKS_H_
