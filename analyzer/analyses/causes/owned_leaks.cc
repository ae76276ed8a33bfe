#include "analyzer/analyses/causes/owned_leaks.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "analyzer/analyses/causes/torch_frames.h"
#include "analyzer/analyses/holders/variables.h"
#include "analyzer/analyses/steps/iterations.h"
#include "analyzer/analyses/steps/kept.h"

namespace ashlar::analyses {
namespace {

using timeline::BlockSpan;
using timeline::EventIndex;

constexpr double kLeastVariableShare = 0.005;  // of what is live: smaller ones are no leak that is felt
constexpr double kLeastNamed = 0.1;            // of what those of one shape hold, in one that is named
constexpr std::size_t kLeastReplaced = 8;      // sizes that one line made, each a bit larger
constexpr std::size_t kLeastEven = 4;          // the same, each larger by exactly as much
constexpr double kLeastRising = 0.9;           // of the changes from one to the next
constexpr double kLeastGrown = 1.5;            // the last, by the first

// A line of which each block is larger than the one before, which goes: torch.cat of a tensor with itself and a bit
// more.
struct Rising {
  std::size_t sizes = 0;  // 0: it does not rise
  std::uint64_t bytes_each = 0;
};

bool IsEven(const std::vector<std::uint64_t>& sizes) {
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    if (sizes[i] <= sizes[i - 1] || sizes[i] - sizes[i - 1] != sizes[1] - sizes[0]) return false;
  }
  return true;
}

Rising RisingOf(const std::vector<std::uint64_t>& sizes) {
  const std::set<std::uint64_t> apart(sizes.begin(), sizes.end());
  if (apart.size() < (IsEven(sizes) ? kLeastEven : kLeastReplaced)) return {};
  std::size_t rising = 0;
  std::size_t changes = 0;  // the layers of one pass make equal ones
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    changes += sizes[i - 1] != sizes[i] ? 1 : 0;
    rising += sizes[i - 1] < sizes[i] ? 1 : 0;
  }
  const bool is_rising = static_cast<double>(rising) >= kLeastRising * static_cast<double>(changes);
  const bool is_grown = static_cast<double>(sizes.back()) >= kLeastGrown * static_cast<double>(sizes.front());
  if (!is_rising || !is_grown) return {};
  return {apart.size(), (*apart.rbegin() - *apart.begin()) / (apart.size() - 1)};
}

// Without the pieces that the same line makes and adds: torch.cat([x, torch.stack(parts)]).
std::vector<std::uint64_t> WithoutPieces(const std::vector<std::uint64_t>& sizes) {
  std::map<std::uint64_t, std::size_t> counts;
  for (const std::uint64_t size : sizes) ++counts[size];
  const auto piece =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  std::vector<std::uint64_t> out;
  std::copy_if(sizes.begin(), sizes.end(), std::back_inserter(out),
               [&](std::uint64_t size) { return size != piece->first; });
  const bool grows_by_pieces = out.size() > 1 && IsEven(out) && out[1] - out[0] == piece->first;
  return grows_by_pieces ? out : sizes;
}

class OwnedSearch {
 public:
  OwnedSearch(const timeline::Timeline& timeline, const trace::StackTable* stacks, const Steps& steps,
              const HeldByName& held)
      : timeline_(timeline),
        stacks_(stacks),
        held_(held),
        iterations_(timeline, stacks, steps.steps),
        frames_(timeline, stacks),
        variables_(VariablesOf(held)) {
    const auto is_small = [&](const Variable& variable) {
      return static_cast<double>(variable.bytes) < kLeastVariableShare * static_cast<double>(held.live_bytes);
    };
    variables_.erase(std::remove_if(variables_.begin(), variables_.end(), is_small), variables_.end());
    ReadBlocks();
  }

  std::vector<LeakGrowth> Growths() {
    std::vector<std::vector<std::size_t>> lists;
    for (const Variable& variable : variables_) lists.push_back(variable.blocks);
    const std::vector<std::optional<KeptGroup>> groups = PiledOf(timeline_, iterations_, held_.moment, lists);
    std::map<LeakShape, LeakGrowth> out;
    for (std::size_t i = 0; i < variables_.size(); ++i) {
      const Variable& variable = variables_[i];
      const bool is_kept = groups[i].has_value() && IsOfManyPasses(variable, *groups[i]) &&
                           !variable.IsOfRunningPass(held_) && !IsOfInnerLoop(variable, *groups[i]) &&
                           !IsOfBackwardAtWork(variable);
      if (is_kept) {
        const LeakShape shape = ShapeOf(variable, *groups[i]);
        const bool is_of_evaluation = shape == LeakShape::kEvalGraph || shape == LeakShape::kEvalOutputs;
        if (!groups[i]->WasLetGo() || is_of_evaluation) {
          Add(variable, shape == LeakShape::kOther ? WithNewest(variable, *groups[i]) : *groups[i], out[shape]);
          continue;
        }
      }
      FindReplaced(variable);
    }
    for (const Replaced& one : replaced_) AddReplaced(one, out);
    if (out.empty() && !variables_.empty()) AddFilled(variables_.front(), out);
    if (out.empty()) AddGraphsOfEarlierSteps(out);
    std::vector<LeakGrowth> sorted;
    for (auto& [shape, growth] : out) {
      growth.shape = shape;
      if (growth.bytes > 0) sorted.push_back(std::move(growth));
    }
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const LeakGrowth& a, const LeakGrowth& b) { return a.bytes > b.bytes; });
    return sorted;
  }

 private:
  // A variable whose few blocks are the last and largest of what their line made.
  struct Replaced {
    const Variable* variable = nullptr;
    trace::StackId line = trace::kNoStack;
    Rising rising = {};

    // What grows as often as a variable of more bytes, and by far less, may be computed from that: by another line.
    bool MayBeOf(const Replaced& other) const {
      if (line == other.line) return false;
      const bool is_as_often = rising.sizes <= other.rising.sizes + 1 && other.rising.sizes <= rising.sizes + 1;
      return is_as_often && variable->bytes < other.variable->bytes && 2 * rising.bytes_each < other.rising.bytes_each;
    }
  };

  void ReadBlocks() {
    for (const BlockSpan& block : timeline_.blocks()) {
      if (block.alloc_event < 0 || block.alloc_event > held_.moment) continue;
      if (frames_.IsBackward(block)) {
        backward_.push_back(block.alloc_event);
        last_backward_ = std::max<EventIndex>(last_backward_, block.alloc_event);
        trained_.insert(iterations_.At(block.alloc_event));
      } else if (frames_.Of(block.stack).part == ProgramPart::kOptimizer) {
        last_optimized_ = std::max<EventIndex>(last_optimized_, block.alloc_event);
      } else if (frames_.Of(block.stack).is_forward) {
        first_pass_ = std::min<EventIndex>(first_pass_, block.alloc_event);
      }
    }
    for (const HeldRow& row : held_.rows) {
      is_optimized_ = is_optimized_ || row.holder.Is("optimized") || RoleOf(row.holder) == OwnerRole::kOptimizer;
    }
  }

  // What the setup made in a loop of its own stays, and grows no more: of a model its layers, made or moved one by one.
  bool IsOfManyPasses(const Variable& variable, const KeptGroup& group) const {
    if (first_pass_ == timeline::kNever) return 2 * variable.BytesOf(held_, IsOfOneModel) <= variable.bytes;
    return timeline_.blocks()[group.blocks.back()].alloc_event > first_pass_;
  }

  // The rounds of an inner loop (torch.autograd.grad) are one pass, whose backward pass is still to come.
  bool IsOfInnerLoop(const Variable& variable, const KeptGroup& group) const {
    return variable.role == OwnerRole::kGraph && frames_.AreGradientsInner() &&
           last_backward_ < timeline_.blocks()[group.blocks.front()].alloc_event;
  }

  // One pass, whose layers recur as steps would, and the backward pass through it that began after.
  bool IsOfBackwardAtWork(const Variable& variable) const {
    const EventIndex first = timeline_.blocks()[variable.blocks.front()].alloc_event;
    const EventIndex last = timeline_.blocks()[variable.blocks.back()].alloc_event;
    const auto next = std::upper_bound(backward_.begin(), backward_.end(), std::max<EventIndex>(first, 0));
    if (variable.role != OwnerRole::kGraph || next == backward_.end() || *next <= last) return false;
    return RoundsIn(timeline_, stacks_, {first, last + 1}).empty();
  }

  bool IsMostly(const Variable& variable, absl::string_view trait) const {
    return 2 * variable.BytesOf(held_, [&](const trace::Holder& holder) { return holder.Is(trait); }) > variable.bytes;
  }

  // Whether no backward pass runs in most of the iterations of which something stays.
  bool IsWithoutBackward(const KeptGroup& group) const {
    std::set<std::size_t> all;
    std::size_t without = 0;
    for (const std::size_t index : group.blocks) {
      const std::size_t iteration = iterations_.At(timeline_.blocks()[index].alloc_event);
      if (all.insert(iteration).second && trained_.count(iteration) == 0) ++without;
    }
    return 2 * without > all.size();
  }

  // By the function of a hook; or in backward passes, where hooks are seen: a tensor's own leaves no frame.
  bool IsMadeByHooks(const KeptGroup& group) const {
    std::uint64_t bytes = 0;
    for (const std::size_t index : group.blocks) {
      const BlockSpan& block = timeline_.blocks()[index];
      const bool is_gradient = frames_.AreHooksSeen() && frames_.IsBackward(block);
      if (is_gradient || frames_.Of(block.stack).is_hook) bytes += block.size_bytes;
    }
    return 2 * bytes > group.bytes;
  }

  bool IsNamedEvaluation(const KeptGroup& group) const {
    std::uint64_t bytes = 0;
    for (const std::size_t index : group.blocks) {
      const BlockSpan& block = timeline_.blocks()[index];
      if (frames_.Of(block.stack).part == ProgramPart::kEvaluation) bytes += block.size_bytes;
    }
    return 2 * bytes > group.bytes;
  }

  // An evaluation, by the mode of the modules; where that says nothing, by the program's own word for it, or as nothing
  // is trained at all.
  bool IsEvaluation(const Variable& variable, const KeptGroup& group) const {
    if (!IsWithoutBackward(group)) return false;
    const auto bytes_in = [&](absl::string_view mode) {
      return variable.BytesOf(held_, [&](const trace::Holder& holder) { return holder.mode == mode; });
    };
    if (2 * bytes_in("eval") > variable.bytes) return true;
    return IsNamedEvaluation(group) || (!is_optimized_ && last_backward_ < 0);
  }

  LeakShape ShapeOf(const Variable& variable, const KeptGroup& group) {
    switch (variable.role) {
      case OwnerRole::kError:
        return LeakShape::kFrames;
      case OwnerRole::kCycle:
        return LeakShape::kCycle;
      case OwnerRole::kOptimizer:
        return IsOfContainers(variable) ? LeakShape::kOther : LeakShape::kOptimizer;
      case OwnerRole::kWeights:
      case OwnerRole::kGradient:
        return IsOfContainers(variable) ? LeakShape::kOther : LeakShape::kOutputs;
      case OwnerRole::kHook:
        return LeakShape::kHooks;
      default:
        break;
    }
    if (IsMostly(variable, "hooked")) return LeakShape::kHooks;
    if (IsMostly(variable, "state_dict")) return LeakShape::kOther;
    if (variable.role == OwnerRole::kGraph) {
      return IsEvaluation(variable, group) ? LeakShape::kEvalGraph : LeakShape::kGraph;
    }
    if (IsMadeByHooks(group)) return LeakShape::kHooks;
    if (RisingByTurns(variable).sizes > 0) return LeakShape::kCache;
    const EventIndex born = timeline_.blocks()[group.blocks.front()].alloc_event;
    const bool follows_training = last_backward_ >= 0 && last_backward_ < born;
    return follows_training || IsNamedEvaluation(group) ? LeakShape::kEvalOutputs : LeakShape::kOutputs;
  }

  // Whole models in a list or the like, and not parameters that one model gains.
  bool IsOfContainers(const Variable& variable) const {
    const std::uint64_t weights = variable.BytesOf(held_, [](const trace::Holder& holder) {
      return RoleOf(holder) == OwnerRole::kWeights || RoleOf(holder) == OwnerRole::kGradient;
    });
    return weights > 0 && absl::EndsWith(variable.name, "[]");
  }

  // A list of sets of weights has the newest set too, whichever iteration made it.
  KeptGroup WithNewest(const Variable& variable, KeptGroup group) const {
    group.blocks = variable.blocks;
    group.bytes = 0;
    for (const std::size_t index : group.blocks) group.bytes += timeline_.blocks()[index].size_bytes;
    return group;
  }

  void Add(const Variable& variable, const KeptGroup& group, LeakGrowth& out) const {
    out.is_replaced = false;
    out.bytes += group.bytes;
    out.bytes_per_step += group.bytes / group.span;
    out.steps = std::max(out.steps, group.iterations);
    out.blocks.insert(out.blocks.end(), group.blocks.begin(), group.blocks.end());
    AddOwner(variable, out);
  }

  void AddOwner(const Variable& variable, LeakGrowth& out) const {
    std::set<trace::StackId> lines;
    for (const std::size_t index : variable.blocks) lines.insert(timeline_.blocks()[index].stack);
    out.lines += lines.size();
    // Those that hold little beside the first are no names to look for.
    const bool is_small =
        !out.holders.empty() && static_cast<double>(variable.bytes) < kLeastNamed * static_cast<double>(out.bytes);
    if (!is_small) out.holders.push_back(variable.Holder(held_));
  }

  void FindReplaced(const Variable& variable) {
    const std::uint64_t parameters =
        variable.BytesOf(held_, [](const trace::Holder& holder) { return holder.kind == "parameter"; });
    const bool can_be = variable.role == OwnerRole::kVariable || variable.role == OwnerRole::kWeights;
    if (!can_be || 2 * parameters > variable.bytes) return;
    std::map<trace::StackId, std::uint64_t> bytes_of;
    for (const std::size_t index : variable.blocks) {
      bytes_of[timeline_.blocks()[index].stack] += timeline_.blocks()[index].size_bytes;
    }
    const auto most = std::max_element(bytes_of.begin(), bytes_of.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most->first == trace::kNoStack || 2 * most->second < variable.bytes) return;
    Rising rising = RisingOfLine(most->first);
    if (rising.sizes == 0) rising = RisingByTurns(variable);
    if (rising.sizes > 0) replaced_.push_back({&variable, most->first, rising});
  }

  // Of a line that several tensors grow by in turns: most of the variable took the place of something slightly smaller.
  Rising RisingByTurns(const Variable& variable) {
    if (!grown_.has_value()) {
      grown_.emplace();
      for (const KeptGroup& group : KeptGroups(timeline_, iterations_, held_.moment, stacks_)) {
        if (!group.is_replaced || group.WasLetGo()) continue;
        for (const std::size_t index : group.blocks) (*grown_)[index] = {group.iterations, group.bytes_per_iteration};
      }
    }
    std::uint64_t bytes = 0;
    Rising out;
    for (const std::size_t index : variable.blocks) {
      const auto found = grown_->find(index);
      if (found == grown_->end()) continue;
      bytes += timeline_.blocks()[index].AskedBytes();
      out = found->second;
    }
    return 2 * bytes > variable.bytes ? out : Rising{};
  }

  void AddReplaced(const Replaced& one, std::map<LeakShape, LeakGrowth>& out) {
    const bool may_be_computed =
        std::any_of(replaced_.begin(), replaced_.end(), [&one](const Replaced& other) { return one.MayBeOf(other); });
    if (may_be_computed) return;
    const auto [place, is_first] = out.try_emplace(ShapeOfReplaced(*one.variable, one.line));
    LeakGrowth& growth = place->second;
    if (is_first) growth.is_replaced = true;
    const std::vector<std::size_t>& blocks = one.variable->blocks;
    for (const std::size_t index : blocks) growth.bytes += timeline_.blocks()[index].size_bytes;
    growth.bytes_per_step += one.rising.bytes_each * blocks.size();
    growth.steps = std::max(growth.steps, one.rising.sizes);
    growth.blocks.insert(growth.blocks.end(), blocks.begin(), blocks.end());
    AddOwner(*one.variable, growth);
  }

  // Where the trace has no iterations: a container that holds most of all memory, and all that its line has made since
  // the first pass.
  void AddFilled(const Variable& variable, std::map<LeakShape, LeakGrowth>& out) const {
    constexpr std::size_t kLeastFilled = 8;
    constexpr double kLeastShare = 0.5;
    constexpr double kLeastHeld = 0.9;
    const bool is_most = static_cast<double>(variable.bytes) >= kLeastShare * static_cast<double>(held_.live_bytes);
    const bool is_container = variable.role == OwnerRole::kVariable && absl::StrContains(variable.name, "[]");
    if (!is_most || !is_container || IsMostly(variable, "in_call") || first_pass_ == timeline::kNever) return;
    std::map<trace::StackId, std::size_t> counts;
    for (const std::size_t index : variable.blocks) ++counts[timeline_.blocks()[index].stack];
    const auto most = std::max_element(counts.begin(), counts.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    std::size_t made = 0;
    for (const BlockSpan& block : timeline_.blocks()) {
      made += block.stack == most->first && block.alloc_event <= held_.moment ? 1 : 0;
    }
    const bool is_after = timeline_.blocks()[variable.blocks.back()].alloc_event > first_pass_;
    if (most->second < kLeastFilled || !is_after) return;
    if (static_cast<double>(most->second) < kLeastHeld * static_cast<double>(made)) return;
    LeakGrowth& growth = out[IsMostly(variable, "hooked") ? LeakShape::kHooks : LeakShape::kOutputs];
    for (const std::size_t index : variable.blocks) growth.bytes += timeline_.blocks()[index].size_bytes;
    growth.steps = most->second;
    growth.bytes_per_step = growth.bytes / growth.steps;
    growth.blocks = variable.blocks;
    AddOwner(variable, growth);
  }

  // Where the trace has no iterations: elements of a container that keep a graph which was there before the optimizer's
  // last step. No pass needs it any more.
  void AddGraphsOfEarlierSteps(std::map<LeakShape, LeakGrowth>& out) const {
    for (const Variable& variable : variables_) {
      const bool is_container = variable.role == OwnerRole::kGraph && absl::EndsWith(variable.name, "[]");
      if (!is_container || IsMostly(variable, "in_call")) continue;
      KeptGroup earlier;
      for (const std::size_t index : variable.blocks) {
        if (timeline_.blocks()[index].alloc_event >= last_optimized_) continue;
        earlier.blocks.push_back(index);
        earlier.bytes += timeline_.blocks()[index].size_bytes;
      }
      if (4 * earlier.bytes < held_.live_bytes) continue;
      LeakGrowth& growth = out[LeakShape::kGraph];
      growth.bytes += earlier.bytes;
      growth.blocks.insert(growth.blocks.end(), earlier.blocks.begin(), earlier.blocks.end());
      AddOwner(variable, growth);
    }
  }

  // A cache is a module's: made in its pass, or kept by it. What the program itself joins are outputs.
  LeakShape ShapeOfReplaced(const Variable& variable, trace::StackId stack) const {
    const trace::Holder& holder = held_.rows[variable.rows.front()].holder;
    const bool is_of_module = holder.kind == "buffer" || (holder.kind == "attribute" && !holder.mode.empty());
    if (frames_.Of(stack).is_forward || is_of_module) return LeakShape::kCache;
    const bool follows_training =
        last_backward_ >= 0 && last_backward_ < timeline_.blocks()[variable.blocks.front()].alloc_event;
    const bool is_evaluation = follows_training || frames_.Of(stack).part == ProgramPart::kEvaluation;
    return is_evaluation ? LeakShape::kEvalOutputs : LeakShape::kOutputs;
  }

  const Rising& RisingOfLine(trace::StackId stack) {
    const auto [found, is_new] = rising_.try_emplace(stack);
    if (!is_new) return found->second;
    std::vector<std::uint64_t> sizes;
    std::size_t live = 0;
    for (const BlockSpan& block : timeline_.blocks()) {
      if (block.stack != stack || block.alloc_event > held_.moment) continue;
      sizes.push_back(block.AskedBytes());
      live += block.IsLiveAfter(held_.moment) ? 1 : 0;
    }
    if (sizes.empty() || 2 * live > sizes.size()) return found->second;
    found->second = RisingOf(sizes);
    if (found->second.sizes == 0) found->second = RisingOf(WithoutPieces(sizes));
    return found->second;
  }

  const timeline::Timeline& timeline_;
  const trace::StackTable* stacks_;
  const HeldByName& held_;
  Iterations iterations_;
  TorchStacks frames_;
  std::vector<Variable> variables_;
  EventIndex first_pass_ = timeline::kNever;
  std::vector<EventIndex> backward_;  // when a backward pass made a block, in order
  EventIndex last_backward_ = timeline::kBeforeWindow;
  EventIndex last_optimized_ = timeline::kBeforeWindow;
  std::set<std::size_t> trained_;  // iterations with a backward pass
  bool is_optimized_ = false;      // an optimizer is there
  std::map<trace::StackId, Rising> rising_;
  std::vector<Replaced> replaced_;
  std::optional<std::map<std::size_t, Rising>> grown_;  // by block
};

}  // namespace

std::vector<LeakGrowth> OwnedLeaks(const timeline::Timeline& timeline, const trace::StackTable* stacks,
                                   const Steps& steps, const HeldByName& held) {
  return OwnedSearch(timeline, stacks, steps, held).Growths();
}

}  // namespace ashlar::analyses
