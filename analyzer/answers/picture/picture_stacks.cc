#include "analyzer/answers/picture/picture_stacks.h"

#include <utility>

#include "analyzer/analyses/state/live_stacks.h"

namespace ashlar::answers {

std::uint32_t PictureStacks::Number(trace::StackId stack) {
  if (table_ == nullptr || stack == trace::kNoStack) return trace::kNoStack;
  const auto [found, is_new] = numbers_.try_emplace(stack, static_cast<std::uint32_t>(stacks_.size()));
  if (!is_new) return found->second;
  StackPicture picture{analyses::StackLabel(*table_, stack), {}};
  for (const trace::FrameId frame : table_->stack(stack)) picture.frames.push_back(NumberOfFrame(frame));
  stacks_.push_back(std::move(picture));
  return found->second;
}

std::uint32_t PictureStacks::NumberOfFrame(trace::FrameId frame) {
  const auto [found, is_new] = frame_numbers_.try_emplace(frame, static_cast<std::uint32_t>(frames_.size()));
  if (is_new) frames_.push_back(table_->frame(frame));
  return found->second;
}

void PictureStacks::Renumber(RunPicture& run) {
  for (BlockPicture& block : run.blocks) block.stack = Number(block.stack);
  for (SegmentPicture& segment : run.segments) segment.stack = Number(segment.stack);
}

void PictureStacks::MoveTo(Picture& picture) {
  picture.stacks = std::move(stacks_);
  picture.frames = std::move(frames_);
}

}  // namespace ashlar::answers
