#include "analyzer/analyses/causes/leak_shapes.h"

#include <algorithm>
#include <map>
#include <set>

#include "analyzer/analyses/causes/cause.h"
#include "analyzer/analyses/causes/evidence.h"
#include "analyzer/analyses/causes/owned_leaks.h"
#include "analyzer/analyses/causes/torch_frames.h"
#include "analyzer/analyses/steps/iterations.h"
#include "analyzer/analyses/steps/kept.h"

namespace ashlar::analyses {
namespace {

using timeline::BlockSpan;
using timeline::EventIndex;

// The end of the last whole step before an event.
EventIndex LastStepEnd(const Steps& steps, EventIndex before) {
  EventIndex out = 0;
  for (const EventRange& step : steps.steps) {
    if (step.end <= before) out = std::max(out, step.end);
  }
  return out;
}

// Blocks are in the order of their allocation.
std::size_t FirstFrom(const timeline::Timeline& timeline, EventIndex event) {
  const auto blocks = timeline.blocks();
  const auto at = std::lower_bound(blocks.begin(), blocks.end(), event,
                                   [](const BlockSpan& block, EventIndex e) { return block.alloc_event < e; });
  return static_cast<std::size_t>(at - blocks.begin());
}

// The first block of a forward pass in a range; its end if there is none.
EventIndex PassBegins(const timeline::Timeline& timeline, const TorchStacks& frames, EventRange range) {
  const auto blocks = timeline.blocks();
  for (std::size_t i = FirstFrom(timeline, range.begin); i < blocks.size(); ++i) {
    if (blocks[i].alloc_event >= range.end) break;
    if (frames.Of(blocks[i].stack).is_forward) return blocks[i].alloc_event;
  }
  return range.end;
}

// Whether two requests came from one thread, as far as their outermost frames tell.
bool AreOfOneThread(const trace::StackTable& stacks, trace::StackId a, trace::StackId b) {
  const auto has_frames = [&stacks](trace::StackId id) {
    return id < stacks.stack_count() && !stacks.stack(id).empty();
  };
  if (!has_frames(a) || !has_frames(b)) return true;
  const trace::Frame& first = stacks.frame(stacks.stack(a).back());
  const trace::Frame& second = stacks.frame(stacks.stack(b).back());
  return first.file == second.file && first.function == second.function;
}

}  // namespace

std::vector<std::size_t> BlocksOfFailedAttempts(const timeline::Timeline& timeline, EventIndex moment,
                                                const trace::StackTable* stacks, const Steps& steps) {
  std::vector<std::size_t> out;
  if (stacks == nullptr || timeline.oom_events().size() < 2) return out;
  const TorchStacks frames(timeline, stacks);
  const auto stack_at = [&timeline](EventIndex event) {
    const bool is_inside = event >= 0 && event < timeline.event_count();
    return is_inside ? timeline.events()[static_cast<std::size_t>(event)].stack : trace::kNoStack;
  };
  EventIndex before = 0;
  for (const EventIndex failure : timeline.oom_events()) {
    if (failure >= moment) break;
    if (!AreOfOneThread(*stacks, stack_at(failure), stack_at(moment))) continue;
    const EventIndex begin = PassBegins(timeline, frames, {std::max(before, LastStepEnd(steps, failure)), failure});
    for (std::size_t i = FirstFrom(timeline, begin); i < FirstFrom(timeline, failure); ++i) {
      if (timeline.blocks()[i].IsLiveAfter(moment)) out.push_back(i);
    }
    before = failure + 1;
  }
  return out;
}

namespace {

constexpr std::size_t kLeastGraphLines = 2;   // of a forward pass
constexpr double kLeastGraphShare = 0.12;     // of the blocks of its forward passes that stay
constexpr double kLeastShareOfOneLine = 0.3;  // where layers in a loop make one line of them
constexpr double kMostHookedShare = 0.5;      // of the forward blocks: where all modules have hooks they tell nothing
constexpr double kMostFailedShare = 0.5;      // of a leak's bytes
constexpr double kLeastPassedShare = 0.5;     // of the iterations in which models are made, some pass runs
constexpr std::size_t kLeastCopied = 4;       // blocks of a copy of a model
constexpr std::size_t kLeastCopiedSizes = 2;
constexpr double kLeastCopiedShare = 0.9;  // of its bytes
constexpr std::size_t kLeastLeakRounds = 3;

// By its name. Trainings run passes without gradients as well: rollouts, teachers, frozen encoders.
bool IsEvaluation(ProgramPart part) { return part == ProgramPart::kEvaluation || part == ProgramPart::kGeneration; }

class ShapeSearch {
 public:
  ShapeSearch(const timeline::Timeline& timeline, EventIndex moment, const trace::StackTable* stacks,
              const Steps& steps)
      : timeline_(timeline),
        moment_(moment),
        stacks_(stacks),
        iterations_(timeline, stacks, steps.steps),
        frames_(timeline, stacks) {
    ReadBlocks();
    FindTrained();
    for (KeptGroup& group : KeptGroups(timeline, iterations_, moment, stacks)) {
      const TorchFrames& frames = frames_.Of(group.stack);
      if (frames.part == ProgramPart::kOptimizer || frames.part == ProgramPart::kLoading) continue;
      if (frames.is_of_model && !ArePassesBetween(group)) continue;
      groups_.push_back(std::move(group));
    }
    const std::vector<std::size_t> failed = BlocksOfFailedAttempts(timeline, moment, stacks, steps);
    failed_.insert(failed.begin(), failed.end());
  }

  std::vector<LeakGrowth> Growths() {
    if (!AreIterationsReal()) return {};
    FindPasses();
    // The rounds of an inner loop are one pass, whose backward pass is still to come.
    if (frames_.AreGradientsInner() && IsWithoutBackward(first_)) return {};
    const bool is_graph = IsGraph();
    std::map<LeakShape, LeakGrowth> out;
    for (const KeptGroup& group : groups_) {
      const LeakShape shape = ShapeOf(group, is_graph);
      // What an evaluation collects is too much where a request failed beside it; its graph always is.
      const bool is_too_much = shape == LeakShape::kEvalGraph || (shape == LeakShape::kEvalOutputs && IsFailure());
      if (((group.WasLetGo() || IsLetGoLater(group)) && !is_too_much) || IsOfFailedAttempts(group)) continue;
      Add(group, shape, out[shape]);
    }
    std::vector<LeakGrowth> sorted;
    for (auto& [shape, growth] : out) sorted.push_back(std::move(growth));
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const LeakGrowth& a, const LeakGrowth& b) { return a.bytes > b.bytes; });
    return sorted;
  }

 private:
  // The iterations that run a module, the first block of one, the backward passes and the sizes of the parameters.
  void ReadBlocks() {
    for (const BlockSpan& block : timeline_.blocks()) {
      const TorchFrames& frames = frames_.Of(block.stack);
      if (block.alloc_event > moment_) continue;
      const bool is_of_size = frames.is_of_model || frames.part == ProgramPart::kOptimizer;
      if (is_of_size && block.IsLiveAfter(moment_)) parameter_sizes_.insert(block.AskedBytes());
      if (block.alloc_event < 0) continue;
      is_training_ = is_training_ || frames.is_training_mode || (frames.is_loss && !frames.is_without_grad);
      if (frames_.IsBackward(block)) backward_.push_back(block.alloc_event);
      if (frames.part == ProgramPart::kOptimizer) optimizer_.push_back(block.alloc_event);
      if (!frames.is_forward) continue;
      first_forward_ = std::min<EventIndex>(first_forward_, block.alloc_event);
      passing_.insert(iterations_.At(block.alloc_event));
    }
  }

  // The lines of a forward pass whose blocks a backward pass lets go: a training's.
  void FindTrained() {
    struct Freed {
      std::size_t blocks = 0;
      std::size_t outlived_backward = 0;
    };
    std::map<trace::StackId, Freed> freed;
    for (const BlockSpan& block : timeline_.blocks()) {
      if (block.free_requested_event > moment_ || !frames_.Of(block.stack).is_forward) continue;
      Freed& of = freed[block.stack];
      ++of.blocks;
      const auto backward = std::upper_bound(backward_.begin(), backward_.end(), block.alloc_event);
      if (backward != backward_.end() && *backward < block.free_requested_event) ++of.outlived_backward;
    }
    for (const auto& [stack, of] : freed) {
      if (2 * of.outlived_backward > of.blocks) trained_.insert(stack);
    }
  }

  // A loop that makes, moves or loads one model runs no pass between its parts.
  bool ArePassesBetween(const KeptGroup& group) const {
    const auto begin = passing_.lower_bound(group.first_iteration);
    const auto passes = std::distance(begin, passing_.lower_bound(group.first_iteration + group.span));
    return static_cast<double>(passes) >= kLeastPassedShare * static_cast<double>(group.span);
  }

  // Layers of one pass recur as iterations do. So where no backward pass ends one, lines outside of the modules must
  // recur between passes.
  bool AreIterationsReal() const {
    if (!backward_.empty() || first_forward_ == timeline::kNever) return true;
    std::set<std::size_t> rounds;
    const std::vector<EventIndex> begins = RoundsIn(timeline_, stacks_, {first_forward_, moment_ + 1});
    for (const BlockSpan& block : timeline_.blocks()) {
      if (block.alloc_event > moment_ || !frames_.Of(block.stack).is_forward) continue;
      const auto after = std::upper_bound(begins.begin(), begins.end(), block.alloc_event);
      rounds.insert(static_cast<std::size_t>(after - begins.begin()));
    }
    return rounds.size() >= kLeastLeakRounds;
  }

  // Blocks of the sizes of parameters, several in each iteration and not all alike: a copy of the model.
  bool IsCopyOfModel(const KeptGroup& group) const {
    const TorchFrames& frames = frames_.Of(group.stack);
    if (frames.is_copy || frames.is_of_model) return true;
    if (frames.is_forward || !frames.has_frames || frames.part == ProgramPart::kBackward) return false;
    if (group.blocks.size() < kLeastCopied * group.iterations || AreCopiesOfGradients(group)) return false;
    std::set<std::uint64_t> sizes;
    std::uint64_t alike = 0;
    for (const std::size_t index : group.blocks) {
      const BlockSpan& block = timeline_.blocks()[index];
      if (parameter_sizes_.count(block.AskedBytes()) == 0) continue;
      sizes.insert(block.AskedBytes());
      alike += block.size_bytes;
    }
    return sizes.size() >= kLeastCopiedSizes &&
           static_cast<double>(alike) >= kLeastCopiedShare * static_cast<double>(group.bytes);
  }

  // Made after a backward pass and before the optimizer's step that follows it, in most cases.
  bool AreCopiesOfGradients(const KeptGroup& group) const {
    const auto last_before = [](const std::vector<EventIndex>& events, EventIndex event) {
      const auto after = std::upper_bound(events.begin(), events.end(), event);
      return after == events.begin() ? timeline::kBeforeWindow : *(after - 1);
    };
    std::size_t between = 0;
    for (const std::size_t index : group.blocks) {
      const EventIndex made = timeline_.blocks()[index].alloc_event;
      const auto step = std::upper_bound(optimizer_.begin(), optimizer_.end(), made);
      const bool does_step_follow =
          step != optimizer_.end() && last_before(backward_, *step) == last_before(backward_, made);
      if (does_step_follow && last_before(backward_, made) > last_before(optimizer_, made)) ++between;
    }
    return 2 * between > group.blocks.size();
  }

  // When the first block came that stays, and how many a pass made since.
  void FindPasses() {
    for (const KeptGroup& group : groups_) {
      if (group.is_replaced || IsCopyOfModel(group)) continue;
      first_ = std::min<EventIndex>(first_, timeline_.blocks()[group.blocks.front()].alloc_event);
    }
    std::size_t forward = 0;
    std::size_t hooked = 0;
    for (const BlockSpan& block : timeline_.blocks()) {
      if (block.alloc_event < 0 || block.alloc_event > moment_) continue;
      if (!frames_.Of(block.stack).is_forward) continue;
      ++forward;
      if (frames_.Of(block.stack).is_hooked_inside) ++hooked;
      if (block.alloc_event >= first_ && iterations_.At(block.alloc_event) < iterations_.At(moment_)) ++passed_;
    }
    do_hooks_tell_ = static_cast<double>(hooked) <= kMostHookedShare * static_cast<double>(forward);
  }

  bool IsGraph() const {
    std::size_t lines = 0;
    std::size_t blocks = 0;
    std::size_t most_a_pass = 0;
    for (const KeptGroup& group : groups_) {
      const TorchFrames& frames = frames_.Of(group.stack);
      if (group.is_replaced || !frames.is_forward || frames.is_hook || frames.is_without_grad) continue;
      ++lines;
      blocks += group.blocks.size();
      most_a_pass = std::max(most_a_pass, group.blocks.size() / group.iterations);
    }
    const double least = lines >= kLeastGraphLines ? kLeastGraphShare : kLeastShareOfOneLine;
    const bool has_several = lines >= kLeastGraphLines || most_a_pass >= kLeastGraphLines;
    return has_several && static_cast<double>(blocks) >= least * static_cast<double>(passed_);
  }

  // Without a backward pass to come. Passes that drop out or compute a loss before the first backward pass are a
  // training's, unless they are named otherwise: it adds up the losses of several.
  bool IsOfEvaluation(const KeptGroup& group) const {
    if (!IsWithoutBackward(first_) || trained_.count(group.stack) > 0) return false;
    return !backward_.empty() || !is_training_ || IsEvaluation(frames_.Of(group.stack).part);
  }

  bool IsWithoutBackward(EventIndex from) const { return backward_.empty() || backward_.back() < from; }

  LeakShape ShapeOf(const KeptGroup& group, bool is_graph) const {
    const TorchFrames& frames = frames_.Of(group.stack);
    const EventIndex born = timeline_.blocks()[group.blocks.front()].alloc_event;
    if (IsCopyOfModel(group)) return LeakShape::kOther;
    if (group.is_replaced) return LeakShape::kCache;
    if (is_graph && !frames.is_without_grad) {
      return IsOfEvaluation(group) ? LeakShape::kEvalGraph : LeakShape::kGraph;
    }
    if (frames.is_hook || (frames.is_hooked_inside && do_hooks_tell_)) return LeakShape::kHooks;
    // A tensor's own hook leaves no frame: what backward passes leave is put down to hooks where some are seen.
    if (frames_.IsBackward(timeline_.blocks()[group.blocks.front()]) && frames_.AreHooksSeen())
      return LeakShape::kHooks;
    const bool follows_training = !backward_.empty() && IsWithoutBackward(born);
    return IsEvaluation(frames.part) || follows_training ? LeakShape::kEvalOutputs : LeakShape::kOutputs;
  }

  bool IsFailure() const { return !timeline_.oom_events().empty() && timeline_.oom_events().back() == moment_; }

  // Whether most of it goes after the moment, and its line makes as much again: what a round of the program collects.
  // The last of a round may be the first of the next.
  bool IsLetGoLater(const KeptGroup& group) const {
    const auto blocks = timeline_.blocks();
    std::vector<EventIndex> freed;
    for (const std::size_t index : group.blocks) freed.push_back(blocks[index].free_requested_event);
    std::sort(freed.begin(), freed.end());
    const EventIndex gone = freed[freed.size() * 3 / 4];
    if (gone >= timeline_.event_count()) return false;
    const auto again = std::count_if(blocks.begin(), blocks.end(), [&](const BlockSpan& block) {
      return block.stack == group.stack && block.alloc_event > gone;
    });
    return 2 * static_cast<std::size_t>(again) >= group.blocks.size();
  }

  bool IsOfFailedAttempts(const KeptGroup& group) const {
    std::uint64_t bytes = 0;
    for (const std::size_t index : group.blocks) {
      if (failed_.count(index) > 0) bytes += timeline_.blocks()[index].size_bytes;
    }
    return static_cast<double>(bytes) > kMostFailedShare * static_cast<double>(group.bytes);
  }

  static void Add(const KeptGroup& group, LeakShape shape, LeakGrowth& out) {
    out.shape = shape;
    out.bytes += group.bytes;
    out.bytes_per_step += group.is_replaced ? group.bytes_per_iteration : group.bytes / group.span;
    out.steps = std::max(out.steps, group.is_replaced ? group.iterations : group.span);
    out.blocks.insert(out.blocks.end(), group.blocks.begin(), group.blocks.end());
    ++out.lines;
  }

  const timeline::Timeline& timeline_;
  EventIndex moment_;
  const trace::StackTable* stacks_;
  Iterations iterations_;
  TorchStacks frames_;
  std::vector<KeptGroup> groups_;
  std::set<std::size_t> failed_;
  EventIndex first_ = timeline::kNever;
  EventIndex first_forward_ = timeline::kNever;
  std::vector<EventIndex> backward_;         // when a backward pass made a block, in order
  std::vector<EventIndex> optimizer_;        // when an optimizer did
  std::set<trace::StackId> trained_;         // of forward passes
  std::set<std::size_t> passing_;            // iterations that run a module
  std::set<std::uint64_t> parameter_sizes_;  // of what is alive
  std::size_t passed_ = 0;  // forward blocks since the first that stays, before the moment's own iteration
  bool do_hooks_tell_ = true;
  bool is_training_ = false;  // a dropout's mask was made, or a loss
};

}  // namespace

std::vector<LeakGrowth> FindLeakGrowths(const timeline::Timeline& timeline, EventIndex moment,
                                        const trace::StackTable* stacks, const Steps& steps, const HeldByName* held) {
  if (held != nullptr && held->Decides(moment)) return OwnedLeaks(timeline, stacks, steps, *held);
  return ShapeSearch(timeline, moment, stacks, steps).Growths();
}

std::optional<LeakGrowth> LeakAt(const CauseContext& context) {
  if (!context.history.has_value()) return std::nullopt;
  for (const LeakGrowth& growth : context.history->leaks) {
    if (growth.bytes >= kLeastMaterialBytes && IsMaterial(context, growth.bytes)) return growth;
  }
  return std::nullopt;
}

}  // namespace ashlar::analyses
