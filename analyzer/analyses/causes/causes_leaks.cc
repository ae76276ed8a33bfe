// Causes of memory that piles up from iteration to iteration, by the shape of the leak (leak_shapes.h).
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/causes/cause_table.h"
#include "analyzer/analyses/causes/evidence.h"
#include "analyzer/analyses/causes/leak_shapes.h"

namespace ashlar::analyses {
namespace {

constexpr std::size_t kSureSteps = 4;  // iterations over which a leak grew

const LeakGrowth* LeakOf(const CauseContext& context, LeakShape shape) {
  for (const LeakGrowth& leak : context.history->leaks) {
    if (leak.shape == shape) return &leak;
  }
  return nullptr;
}

std::vector<LiveBlock> BlocksOf(const CauseContext& context, const LeakGrowth& leak) {
  std::vector<LiveBlock> out;
  for (const std::size_t index : leak.blocks) out.push_back({&context.history->timeline->blocks()[index], {}});
  return out;
}

// The answer that all shapes share; `words` says what piles up.
CauseFinding LeakFinding(const CauseContext& context, CauseKind kind, LeakShape shape, absl::string_view words) {
  const LeakGrowth* const leak = LeakOf(context, shape);
  if (leak == nullptr || leak->bytes < kLeastMaterialBytes || !IsMaterial(context, leak->bytes)) {
    return Absent(kind,
                  absl::StrCat(words, " of earlier iterations hold ", FormatBytes(leak == nullptr ? 0 : leak->bytes)));
  }
  const std::vector<LiveBlock> blocks = BlocksOf(context, *leak);
  CauseFinding out = Found(kind, leak->steps >= kSureSteps ? Confidence::kProven : Confidence::kLikely, leak->bytes);
  out.stacks = StacksOf(blocks);
  out.evidence.push_back(absl::StrCat(words, " of earlier iterations hold ", FormatBytes(leak->bytes), " in ",
                                      blocks.size(), " blocks: ", FormatBytes(leak->bytes_per_step),
                                      " more in each of ", leak->steps, " iterations; ", MostFrom(context, blocks)));
  return out;
}

void SayLines(const CauseContext& context, LeakShape shape, absl::string_view after, CauseFinding& out) {
  if (out.finding != Finding::kFound) return;
  out.evidence.push_back(absl::StrCat(LeakOf(context, shape)->lines, after));
}

}  // namespace

CauseFinding DetectGraphKeptAlive(const CauseContext& context) {
  CauseFinding out = LeakFinding(context, CauseKind::kGraphKeptAlive, LeakShape::kGraph, "Activations");
  SayLines(context, LeakShape::kGraph, " lines left some, as a graph that somebody still knows keeps them", out);
  return out;
}

CauseFinding DetectOutputsKept(const CauseContext& context) {
  CauseFinding out = LeakFinding(context, CauseKind::kOutputsKept, LeakShape::kOutputs, "Outputs");
  SayLines(context, LeakShape::kOutputs, " lines left some; the other blocks of their iterations are gone", out);
  return out;
}

CauseFinding DetectHooksKeepActivations(const CauseContext& context) {
  CauseFinding out = LeakFinding(context, CauseKind::kHooksKeepActivations, LeakShape::kHooks, "What hooks saw");
  SayLines(context, LeakShape::kHooks, " lines left some: a hook function, modules that have hooks, or backward passes",
           out);
  return out;
}

CauseFinding DetectKvCacheGrows(const CauseContext& context) {
  CauseFinding out =
      LeakFinding(context, CauseKind::kKvCacheGrows, LeakShape::kCache, "Tensors that grow by torch.cat");
  if (out.finding == Finding::kFound) {
    out.evidence.push_back(
        "each block takes the place of a slightly smaller one of the same line, freed right after it");
  }
  return out;
}

CauseFinding DetectEvalOutputs(const CauseContext& context) {
  CauseFinding out =
      LeakFinding(context, CauseKind::kEvalAccumulates, LeakShape::kEvalOutputs, "Outputs of an evaluation");
  SayLines(context, LeakShape::kEvalOutputs, " lines left some; the other blocks of their iterations are gone", out);
  return out;
}

}  // namespace ashlar::analyses
