#include "analyzer/exports/stack_weights.h"

#include "absl/strings/str_cat.h"
#include "analyzer/analyses/state/live_stacks.h"
#include "analyzer/analyses/state/pin_blame.h"

namespace ashlar::exports {

WeightedStacks LiveWeights(const ExportedRun& run) {
  WeightedStacks out{absl::StrCat("device ", run.device(), ": live bytes at ", MomentInWords(run)), {}};
  for (const analyses::LiveStack& stack : analyses::LiveStacks(run.traced.timeline.StateAt(run.moment))) {
    out.stacks.push_back({stack.stack, stack.bytes});
  }
  return out;
}

WeightedStacks StrandedWeights(const ExportedRun& run) {
  WeightedStacks out{
      absl::StrCat("device ", run.device(), ": stranded bytes, by what pins them, at ", MomentInWords(run)), {}};
  for (const analyses::PinGroup& group : analyses::BlamePins(run.traced.timeline, run.moment).groups) {
    out.stacks.push_back({group.stack, group.blame_bytes});
  }
  return out;
}

}  // namespace ashlar::exports
