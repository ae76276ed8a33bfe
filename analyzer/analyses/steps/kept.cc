#include "analyzer/analyses/steps/kept.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "analyzer/analyses/steps/iterations.h"

namespace ashlar::analyses {
namespace {

using timeline::BlockSpan;
using timeline::EventIndex;

constexpr std::size_t kLeastIterations = 3;
constexpr std::size_t kManyIterations = 8;
constexpr std::size_t kMostGaps = 3;           // since the newest block, in distances between them
constexpr std::size_t kMostLate = 4;           // blocks that stay for each one that went late
constexpr std::size_t kLateIterations = 2;     // a block that lived on into the second iteration after its own
constexpr std::size_t kLeastReplacements = 8;  // of one stack
constexpr double kLeastReplacedShare = 0.6;    // of its blocks; of lengths by chance half grow
constexpr EventIndex kReplacedSoon = 12;       // events between a block and the end of the one it replaces
constexpr std::uint32_t kNothing = ~std::uint32_t{0};
constexpr std::uint64_t kNoBytes = ~std::uint64_t{0};
constexpr std::uint64_t kMostGrowthDivisor = 2;  // a replacement grows by half at most

using BlockKey = std::pair<trace::StackId, std::uint64_t>;  // the size only where there is no stack
using BlockLists = std::map<BlockKey, std::vector<std::size_t>>;

// A block may span more than its program asked for.

BlockKey KeyOf(const BlockSpan& block) {
  return {block.stack, block.stack == trace::kNoStack ? block.AskedBytes() : 0};
}

BlockLists ListBlocks(const timeline::Timeline& timeline, EventIndex moment) {
  BlockLists out;
  for (std::size_t i = 0; i < timeline.blocks().size(); ++i) {
    const BlockSpan& block = timeline.blocks()[i];
    const bool is_of_graph = !(block.pool == PoolId{});  // what was captured keeps its memory by design
    if (!is_of_graph && block.alloc_event >= 0 && block.alloc_event <= moment) out[KeyOf(block)].push_back(i);
  }
  return out;
}

// Of each stack its frames up to the outermost call of a module: equal numbers for equal ones.
std::vector<std::uint32_t> FamiliesOf(const trace::StackTable* stacks) {
  std::vector<std::uint32_t> out;
  if (stacks == nullptr) return out;
  std::map<std::vector<trace::FrameId>, std::uint32_t> numbers;
  for (trace::StackId id = 0; id < stacks->stack_count(); ++id) {
    const auto frames = stacks->stack(id);
    std::size_t end = frames.size();
    while (end > 0 && stacks->frame(frames[end - 1]).function != "_call_impl") --end;
    if (end == 0) end = frames.size();
    const auto next = static_cast<std::uint32_t>(numbers.size());
    out.push_back(
        numbers.try_emplace({frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>(end)}, next).first->second);
  }
  return out;
}

template <typename Value>
Value MedianOf(std::vector<Value> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Distances between neighbours.
template <typename Value>
std::vector<Value> GapsOf(const std::vector<Value>& values) {
  std::vector<Value> out;
  for (std::size_t i = 1; i < values.size(); ++i) out.push_back(values[i] - values[i - 1]);
  return out;
}

// Of a group: what had stayed late and went before its first block came, and since.
struct LateFrees {
  std::size_t before = 0, since = 0;
};

class KeptSearch {
 public:
  KeptSearch(const timeline::Timeline& timeline, const Iterations& iterations, EventIndex moment,
             const trace::StackTable* stacks)
      : blocks_(timeline.blocks()),
        iterations_(iterations),
        moment_(moment),
        now_(iterations.At(moment)),
        families_(FamiliesOf(stacks)) {
    freed_at_.assign(timeline.events().size(), kNothing);
    freed_family_.assign(timeline.events().size(), kNothing);
    born_at_.assign(timeline.events().size(), kNothing);
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      std::uint64_t& smallest = smallest_.try_emplace(FamilyOf(blocks_[i].stack), kNoBytes).first->second;
      smallest = std::min(smallest, blocks_[i].AskedBytes());
      const EventIndex at = blocks_[i].free_requested_event;
      if (at >= 0 && at < timeline.event_count()) {
        freed_at_[static_cast<std::size_t>(at)] = static_cast<std::uint32_t>(i);
        freed_family_[static_cast<std::size_t>(at)] = FamilyOf(blocks_[i].stack);
      }
      const EventIndex born = blocks_[i].alloc_event;
      if (born >= 0 && born < timeline.event_count())
        born_at_[static_cast<std::size_t>(born)] = static_cast<std::uint32_t>(i);
    }
  }

  // What one line of a module allocated, from whichever call.
  std::uint32_t FamilyOf(trace::StackId stack) const {
    return stack < families_.size() ? families_[stack] : static_cast<std::uint32_t>(stack);
  }

  std::optional<KeptGroup> Piled(const std::vector<std::size_t>& all) const { return Piled(all, all, std::nullopt); }

  // Of `held`, which are some of what their lines made: `all`. What others hold of it may go whenever it does: only
  // what had become as old as half of what is held tells that the holder lets go.
  std::optional<KeptGroup> PiledOfHolder(const std::vector<std::size_t>& held,
                                         const std::vector<std::size_t>& all) const {
    std::vector<std::size_t> ages;
    for (const std::size_t index : held) {
      const std::size_t born = iterations_.At(blocks_[index].alloc_event);
      if (born < now_) ages.push_back(now_ - born);
    }
    if (ages.empty()) return std::nullopt;
    return Piled(held, all, std::max(kLateIterations, MedianOf(std::move(ages))));
  }

  std::optional<KeptGroup> Replaced(const std::vector<std::size_t>& all) const {
    if (all.size() < kLeastReplacements) return std::nullopt;
    const std::uint64_t smallest = smallest_.at(FamilyOf(blocks_[all.front()].stack));
    const double least = kLeastReplacedShare * static_cast<double>(all.size());
    std::size_t others = 0;
    std::vector<std::uint64_t> added;
    std::set<std::size_t> in_iterations;
    trace::StackId via = trace::kNoStack;
    for (const std::size_t index : all) {
      // The smallest replaced none. Most lines allocate one size alone.
      const std::uint64_t bytes = blocks_[index].AskedBytes() == smallest ? 0 : AddedBytes(index, via);
      if (bytes == 0) {
        if (static_cast<double>(all.size() - ++others) < least) return std::nullopt;
        continue;
      }
      added.push_back(bytes);
      in_iterations.insert(iterations_.At(blocks_[index].alloc_event));
    }
    if (added.size() < kLeastReplacements || in_iterations.size() < kLeastIterations) return std::nullopt;
    KeptGroup out;
    for (const std::size_t index : all) {
      if (!blocks_[index].IsLiveAfter(moment_)) continue;
      out.blocks.push_back(index);
      out.bytes += blocks_[index].size_bytes;
    }
    if (out.blocks.empty()) return std::nullopt;
    std::uint64_t largest = 0;
    for (const std::size_t index : out.blocks) largest = std::max(largest, blocks_[index].AskedBytes());
    out.freed_before = static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [&](std::size_t index) {
      return !blocks_[index].IsLiveAfter(moment_) && blocks_[index].AskedBytes() >= largest && !IsReplaced(index);
    }));
    std::uint64_t sum = 0;
    for (const std::uint64_t bytes : added) sum += bytes;
    out.iterations = in_iterations.size();
    out.bytes_per_iteration = sum / out.iterations;
    out.is_replaced = true;
    out.via = via;
    Place(all, out);
    return out;
  }

 private:
  std::optional<KeptGroup> Piled(const std::vector<std::size_t>& held, const std::vector<std::size_t>& all,
                                 std::optional<std::size_t> age_of_holder) const {
    KeptGroup out;
    std::map<std::size_t, std::uint64_t> bytes_of;
    for (const std::size_t index : held) {
      const BlockSpan& block = blocks_[index];
      const std::size_t iteration = iterations_.At(block.alloc_event);
      if (!block.IsLiveAfter(moment_) || iteration >= now_) continue;
      out.blocks.push_back(index);
      out.bytes += block.size_bytes;
      bytes_of[iteration] += block.size_bytes;
    }
    if (bytes_of.size() < kLeastIterations) return std::nullopt;
    if (!IsRecentByEvents(out.blocks) && (age_of_holder.has_value() || !IsRecent(bytes_of))) return std::nullopt;
    const LateFrees late =
        CountLateFrees(all, blocks_[out.blocks.front()].alloc_event, age_of_holder.value_or(kLateIterations));
    if (kMostLate * late.since >= out.blocks.size()) return std::nullopt;
    if (AreReplacedOneByOne(out)) return std::nullopt;
    out.freed_before = late.before;
    std::vector<std::uint64_t> each;
    for (const auto& [iteration, bytes] : bytes_of) each.push_back(bytes);
    out.bytes_per_iteration = MedianOf(std::move(each));
    out.iterations = bytes_of.size();
    Place(held, out);
    return out;
  }

  bool IsRecent(const std::map<std::size_t, std::uint64_t>& bytes_of) const {
    std::vector<std::size_t> in;
    for (const auto& [iteration, bytes] : bytes_of) in.push_back(iteration);
    return now_ - in.back() <= kMostGaps * MedianOf(GapsOf(in));
  }

  // By events, as the rounds of the step under way are no steps; by the largest gap, as it gains in bursts; and of what
  // gained often, by a part of the time in which it did: a batch in two that is broken may stay away for long.
  bool IsRecentByEvents(const std::vector<std::size_t>& blocks) const {
    std::vector<EventIndex> born;
    std::size_t last = kNothing;
    for (const std::size_t index : blocks) {
      const std::size_t iteration = iterations_.At(blocks_[index].alloc_event);
      if (iteration != last) born.push_back(blocks_[index].alloc_event);
      last = iteration;
    }
    const std::vector<EventIndex> gaps = GapsOf(born);
    const EventIndex most =
        std::max(static_cast<EventIndex>(kMostGaps) * MedianOf(gaps), *std::max_element(gaps.begin(), gaps.end()));
    const EventIndex since = moment_ - born.back();
    return since <= most || (born.size() >= kManyIterations && 3 * since <= born.back() - born.front());
  }

  void Place(const std::vector<std::size_t>& all, KeptGroup& out) const {
    out.stack = blocks_[all.front()].stack;
    out.first_iteration = iterations_.At(blocks_[out.blocks.front()].alloc_event);
    out.span = std::max<std::size_t>(now_ - std::min(now_, out.first_iteration), 1);
  }

  // Whether most of them go after the moment, in several iterations: a buffer that had just become full.
  bool AreReplacedOneByOne(const KeptGroup& group) const {
    std::size_t freed = 0;
    std::set<std::size_t> in_iterations;
    for (const std::size_t index : group.blocks) {
      if (blocks_[index].free_requested_event == timeline::kNever) continue;
      ++freed;
      in_iterations.insert(iterations_.At(blocks_[index].free_requested_event));
    }
    return 2 * freed >= group.blocks.size() && in_iterations.size() >= kLeastIterations;
  }

  LateFrees CountLateFrees(const std::vector<std::size_t>& all, EventIndex first, std::size_t late_iterations) const {
    LateFrees out;
    for (const std::size_t index : all) {
      const BlockSpan& block = blocks_[index];
      if (block.IsLiveAfter(moment_)) continue;
      const std::size_t lived = iterations_.At(block.free_requested_event) - iterations_.At(block.alloc_event);
      if (lived >= late_iterations) ++(block.free_requested_event < first ? out.before : out.since);
    }
    return out;
  }

  // The first of the blocks of these families freed right after one was made that `is_such`; kNothing without one.
  template <typename IsFamily, typename IsSuch>
  std::uint32_t FreedAfter(const BlockSpan& block, IsFamily is_family, IsSuch is_such) const {
    const EventIndex end = std::min(block.alloc_event + kReplacedSoon + 1, static_cast<EventIndex>(freed_at_.size()));
    for (EventIndex at = block.alloc_event + 1; at < end; ++at) {
      if (!is_family(freed_family_[static_cast<std::size_t>(at)])) continue;
      const std::uint32_t freed = freed_at_[static_cast<std::size_t>(at)];
      if (freed == kNothing || blocks_[freed].alloc_event < 0) continue;
      if (blocks_[freed].alloc_event < block.alloc_event && is_such(blocks_[freed])) return freed;
    }
    return kNothing;
  }

  // How much larger a block is than the one of its line that it replaced; 0: it replaced none. `via` is set where a
  // block of another line stood between the two: a copy of the older, or what the newer is a copy of.
  std::uint64_t AddedBytes(std::size_t index, trace::StackId& via) const {
    const BlockSpan& block = blocks_[index];
    const std::uint64_t asked = block.AskedBytes();
    const auto is_own = [own = FamilyOf(block.stack)](std::uint32_t family) { return family == own; };
    const auto is_other = [&](std::uint32_t family) { return !is_own(family); };
    const auto is_older = [&](const BlockSpan& old) {
      return old.AskedBytes() < asked && asked - old.AskedBytes() <= old.AskedBytes() / kMostGrowthDivisor;
    };
    const std::uint32_t old = FreedAfter(block, is_own, is_older);
    if (old != kNothing) return asked - blocks_[old].AskedBytes();
    std::uint32_t oldest = kNothing;
    const std::uint32_t between = FreedAfter(block, is_other, [&](const BlockSpan& other) {
      if (other.AskedBytes() > asked) return false;
      oldest = FreedAfter(other, is_own, [&](const BlockSpan& first) {
        return is_older(first) && (first.AskedBytes() == other.AskedBytes() || other.AskedBytes() == asked);
      });
      return oldest != kNothing;
    });
    if (between == kNothing) return 0;
    via = blocks_[between].stack;
    return asked - blocks_[oldest].AskedBytes();
  }

  // Whether a block was freed right after one was made that is larger, but not twice as large.
  bool IsReplaced(std::size_t index) const {
    const BlockSpan& block = blocks_[index];
    for (EventIndex at = std::max<EventIndex>(block.free_requested_event - kReplacedSoon, 0);
         at < block.free_requested_event; ++at) {
      const std::uint32_t born = born_at_[static_cast<std::size_t>(at)];
      if (born == kNothing || born == index) continue;
      const std::uint64_t asked = blocks_[born].AskedBytes();
      if (block.AskedBytes() < asked && asked <= 2 * block.AskedBytes()) return true;
    }
    return false;
  }

  absl::Span<const BlockSpan> blocks_;
  const Iterations& iterations_;
  EventIndex moment_;
  std::size_t now_;
  std::vector<std::uint32_t> families_;                         // by stack
  absl::flat_hash_map<std::uint32_t, std::uint64_t> smallest_;  // of each family, what was asked
  std::vector<std::uint32_t> freed_at_;                         // which block an event freed
  std::vector<std::uint32_t> freed_family_;                     // and of which family: blocks themselves lie far apart
  std::vector<std::uint32_t> born_at_;                          // which block an event made
};

}  // namespace

std::vector<KeptGroup> KeptGroups(const timeline::Timeline& timeline, const Iterations& iterations, EventIndex moment,
                                  const trace::StackTable* stacks) {
  const KeptSearch search(timeline, iterations, moment, stacks);
  const BlockLists lists = ListBlocks(timeline, moment);
  std::map<std::uint32_t, std::vector<std::size_t>> families;
  for (const auto& [key, all] : lists) {
    if (key.first == trace::kNoStack) continue;
    std::vector<std::size_t>& family = families[search.FamilyOf(key.first)];
    family.insert(family.end(), all.begin(), all.end());
  }
  std::vector<KeptGroup> out;
  std::set<std::uint32_t> replaced;
  for (auto& [family, all] : families) {
    std::sort(all.begin(), all.end());
    std::optional<KeptGroup> group = search.Replaced(all);
    if (!group.has_value()) continue;
    replaced.insert(family);
    out.push_back(*std::move(group));
  }
  for (const auto& [key, all] : lists) {
    if (key.first != trace::kNoStack && replaced.count(search.FamilyOf(key.first)) > 0) continue;
    std::optional<KeptGroup> group = search.Piled(all);
    if (group.has_value()) out.push_back(*std::move(group));
  }
  std::stable_sort(out.begin(), out.end(), [](const KeptGroup& a, const KeptGroup& b) {
    return std::pair(b.bytes, a.blocks.front()) < std::pair(a.bytes, b.blocks.front());
  });
  return out;
}

std::vector<std::optional<KeptGroup>> PiledOf(const timeline::Timeline& timeline, const Iterations& iterations,
                                              EventIndex moment, absl::Span<const std::vector<std::size_t>> lists) {
  const KeptSearch search(timeline, iterations, moment, nullptr);
  const BlockLists made = ListBlocks(timeline, moment);
  std::vector<std::optional<KeptGroup>> out;
  for (const std::vector<std::size_t>& held : lists) {
    std::set<BlockKey> keys;
    for (const std::size_t index : held) keys.insert(KeyOf(timeline.blocks()[index]));
    std::vector<std::size_t> all;
    for (const BlockKey& key : keys) {
      const auto found = made.find(key);
      if (found != made.end()) all.insert(all.end(), found->second.begin(), found->second.end());
    }
    out.push_back(search.PiledOfHolder(held, all));
  }
  return out;
}

namespace {

EventIndex FullestEvent(const timeline::Timeline& timeline) {
  if (!timeline.oom_events().empty()) return timeline.oom_events().back();
  return timeline.event_count() == 0 ? timeline::kBeforeWindow : timeline.allocated_peak().event;
}

std::vector<Leak> LeaksAtEvent(const timeline::Timeline& timeline, const Iterations& iterations, EventIndex moment) {
  std::map<trace::StackId, Leak> by_stack;
  for (const KeptGroup& group : KeptGroups(timeline, iterations, moment)) {
    if (group.is_replaced || group.WasLetGo()) continue;
    Leak& leak = by_stack[group.stack];
    leak.stack = group.stack;
    leak.bytes_per_step += group.bytes_per_iteration * group.iterations / std::max(group.span, group.iterations);
    leak.blocks += group.blocks.size();
    leak.bytes += group.bytes;
  }
  std::vector<Leak> out;
  for (const auto& [stack, leak] : by_stack) out.push_back(leak);
  return out;
}

std::uint64_t BytesOfLeaks(const std::vector<Leak>& leaks) {
  std::uint64_t out = 0;
  for (const Leak& leak : leaks) out += leak.bytes;
  return out;
}

}  // namespace

std::vector<Leak> FindLeaks(const timeline::Timeline& timeline, const trace::StackTable* stacks,
                            absl::Span<const EventRange> steps) {
  const Iterations iterations(timeline, stacks, steps);
  std::vector<Leak> out = LeaksAtEvent(timeline, iterations, FullestEvent(timeline));
  if (!steps.empty()) {
    std::vector<Leak> later = LeaksAtEvent(timeline, iterations, steps.back().end - 1);
    if (BytesOfLeaks(later) > BytesOfLeaks(out)) out = std::move(later);
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Leak& a, const Leak& b) { return a.bytes_per_step > b.bytes_per_step; });
  return out;
}

}  // namespace ashlar::analyses
