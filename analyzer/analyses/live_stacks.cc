#include "analyzer/analyses/live_stacks.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace ashlar::analyses {
namespace {

bool IsPython(const trace::Frame& frame) { return absl::EndsWith(frame.file, ".py"); }

bool IsFramework(const trace::Frame& frame) {
  return absl::StrContains(frame.file, "/torch/") || absl::StrContains(frame.file, "\\torch\\");
}

std::string ShortPath(const std::string& path) {
  const std::size_t slash = path.find_last_of("/\\");
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

const trace::Frame* FrameToShow(const trace::StackTable& stacks, absl::Span<const trace::FrameId> frames) {
  const trace::Frame* python = nullptr;
  for (const trace::FrameId id : frames) {
    const trace::Frame& frame = stacks.frame(id);
    if (!IsPython(frame)) continue;
    if (!IsFramework(frame)) return &frame;
    if (python == nullptr) python = &frame;
  }
  if (python != nullptr) return python;
  return frames.empty() ? nullptr : &stacks.frame(frames.front());
}

}  // namespace

std::vector<LiveStack> LiveStacks(const timeline::State& state, std::size_t most) {
  std::map<trace::StackId, LiveStack> groups;
  for (const timeline::StateSegment& segment : state.segments) {
    for (const timeline::StateBlock& block : segment.blocks) {
      if (block.state != trace::BlockState::kLive) continue;
      LiveStack& group = groups[block.stack];
      group.stack = block.stack;
      group.bytes += block.size_bytes;
      ++group.blocks;
    }
  }
  std::vector<LiveStack> out;
  for (const auto& [stack, group] : groups) out.push_back(group);
  std::stable_sort(out.begin(), out.end(), [](const LiveStack& a, const LiveStack& b) { return a.bytes > b.bytes; });
  if (out.size() > most) out.resize(most);
  return out;
}

std::string StackLabel(const trace::StackTable& stacks, trace::StackId stack) {
  const trace::Frame* frame = FrameToShow(stacks, stacks.stack(stack));
  if (frame == nullptr) return "no stack recorded";
  std::string out = ShortPath(frame->file);
  if (frame->line > 0) absl::StrAppend(&out, ":", frame->line);
  return absl::StrCat(out, " ", frame->function);
}

}  // namespace ashlar::analyses
