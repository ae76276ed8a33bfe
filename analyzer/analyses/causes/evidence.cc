#include "analyzer/analyses/causes/evidence.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "allocator/policy/size_rule.h"
#include "analyzer/analyses/state/live_stacks.h"
#include "analyzer/analyses/steps/iterations.h"

namespace ashlar::analyses {

CauseFinding Found(CauseKind kind, Confidence confidence, std::uint64_t bytes) {
  CauseFinding out;
  out.kind = kind;
  out.finding = Finding::kFound;
  out.confidence = confidence;
  out.bytes = bytes;
  return out;
}

CauseFinding Absent(CauseKind kind, std::string counter_evidence) {
  CauseFinding out;
  out.kind = kind;
  out.finding = Finding::kAbsent;
  out.counter_evidence.push_back(std::move(counter_evidence));
  return out;
}

CauseFinding NotInTrace(CauseKind kind, std::string missing) {
  CauseFinding out;
  out.kind = kind;
  out.finding = Finding::kNotInTrace;
  out.missing = std::move(missing);
  return out;
}

namespace {

bool LetsRequestPass(const CauseContext& context, std::uint64_t bytes) {
  const std::optional<Shortage> shortage = ShortageAt(context);
  return shortage.has_value() && shortage->MissingBytes() > 0 && bytes >= shortage->MissingBytes();
}

// Of the memory of a program with a history.
bool IsFelt(const CauseContext& context, std::uint64_t bytes) {
  const std::uint64_t reserved = context.history->timeline->TotalsAfter(context.history->moment).reserved_bytes;
  return bytes >= kLeastMaterialBytes &&
         static_cast<double>(bytes) >= kLeastMaterialShare * static_cast<double>(reserved);
}

}  // namespace

bool IsMaterial(const CauseContext& context, std::uint64_t bytes) {
  if (!context.history.has_value()) return bytes >= kLeastMaterialBytes;
  return IsFelt(context, bytes) || LetsRequestPass(context, bytes);
}

bool IsTrifle(const CauseContext& context, std::uint64_t bytes) {
  return context.history.has_value() && !IsFelt(context, bytes) && LetsRequestPass(context, bytes);
}

bool IsShortOfMemory(const CauseContext& context) {
  const std::optional<Shortage> shortage = ShortageAt(context);
  if (!shortage.has_value() || shortage->MissingBytes() == 0) return false;
  if (context.fails_again) return true;
  const timeline::Totals& totals = context.history->timeline->TotalsAfter(context.history->moment);
  const bool is_over =
      totals.active_bytes + shortage->request_bytes > totals.reserved_bytes + shortage->device_free_bytes;
  const std::uint64_t holes = totals.reserved_bytes - std::min(totals.reserved_bytes, totals.active_bytes);
  return is_over || static_cast<double>(holes) < kLeastMaterialShare * static_cast<double>(totals.reserved_bytes);
}

policy::Options OptionsOf(const CauseContext& context) {
  return context.history->options != nullptr ? *context.history->options : policy::Options{};
}

std::optional<Shortage> ShortageAt(const CauseContext& context) {
  if (!context.history.has_value() || context.history->moment < 0) return std::nullopt;
  const trace::Event& event = context.history->timeline->events()[static_cast<std::size_t>(context.history->moment)];
  if (event.action != trace::Action::kOom) return std::nullopt;
  const policy::Options options = OptionsOf(context);
  Shortage out;
  out.stream = event.stream;
  out.pool = event.pool.value_or(PoolId{});
  out.request_bytes = event.size_bytes;
  out.segment_bytes = policy::SegmentBytes(std::max<std::uint64_t>(event.size_bytes, 1), options);
  out.device_free_bytes = event.address;
  return out;
}

std::uint64_t SparableBytes(const CauseContext& context) {
  if (ShortageAt(context).has_value()) {
    const timeline::Totals& totals = context.history->timeline->TotalsAfter(context.history->moment);
    return totals.reserved_bytes - totals.active_bytes;
  }
  return context.history->timeline->reserved_peak().bytes - context.history->timeline->active_peak().bytes;
}

void SetStacks(const CauseContext& context, CauseFinding& finding) {
  std::map<trace::StackId, std::uint64_t> bytes;
  for (const std::size_t index : finding.blocks) {
    const timeline::BlockSpan& block = context.history->timeline->blocks()[index];
    if (block.stack != trace::kNoStack) bytes[block.stack] += block.size_bytes;
  }
  finding.stacks.clear();
  for (const auto& [stack, held] : bytes) finding.stacks.push_back(stack);
  std::stable_sort(finding.stacks.begin(), finding.stacks.end(),
                   [&bytes](trace::StackId a, trace::StackId b) { return bytes.at(a) > bytes.at(b); });
}

void TakeBlocks(const CauseContext& context, std::vector<std::size_t> blocks, CauseFinding& finding) {
  finding.blocks = std::move(blocks);
  SetStacks(context, finding);
}

std::string LabelOf(const CauseContext& context, trace::StackId stack) {
  if (context.history->stacks == nullptr) return "no stack recorded";
  return StackLabel(*context.history->stacks, stack);
}

std::uint64_t AllocatedBytes(const CauseContext& context) {
  return context.history->timeline->TotalsAfter(context.history->moment).allocated_bytes;
}

bool IsShareOf(std::uint64_t part_bytes, double share, std::uint64_t whole_bytes) {
  return static_cast<double>(part_bytes) >= share * static_cast<double>(whole_bytes);
}

std::string ShareText(std::uint64_t part_bytes, std::uint64_t whole_bytes) {
  if (whole_bytes == 0) return "0.0 %";
  return absl::StrFormat("%.1f %%", 100.0 * static_cast<double>(part_bytes) / static_cast<double>(whole_bytes));
}

std::vector<LiveBlock> LiveBlocks(const CauseContext& context) {
  const ProgramParts parts(context.history->stacks);
  std::vector<LiveBlock> out;
  for (const timeline::BlockSpan& block : context.history->timeline->blocks()) {
    if (block.IsLiveAfter(context.history->moment)) out.push_back({&block, parts.Of(block.stack)});
  }
  return out;
}

std::uint64_t BytesOf(const std::vector<LiveBlock>& blocks) {
  std::uint64_t out = 0;
  for (const LiveBlock& live : blocks) out += live.block->size_bytes;
  return out;
}

std::vector<trace::StackId> StacksOf(const std::vector<LiveBlock>& blocks) {
  std::map<trace::StackId, std::uint64_t> bytes;
  for (const LiveBlock& live : blocks) bytes[live.block->stack] += live.block->size_bytes;
  std::vector<trace::StackId> out;
  for (const auto& [stack, sum] : bytes) out.push_back(stack);
  std::stable_sort(out.begin(), out.end(), [&](auto a, auto b) { return bytes[a] > bytes[b]; });
  return out;
}

std::string MostFrom(const CauseContext& context, const std::vector<LiveBlock>& blocks) {
  const trace::StackId first = StacksOf(blocks).front();
  std::uint64_t bytes = 0;
  for (const LiveBlock& live : blocks) bytes += live.block->stack == first ? live.block->size_bytes : 0;
  return absl::StrCat(FormatBytes(bytes), " of it from ", LabelOf(context, first));
}

const LeakGrowth* LeakOf(const CauseContext& context, LeakShape shape) {
  const std::vector<LeakGrowth>& leaks = context.history->leaks;
  const auto found =
      std::find_if(leaks.begin(), leaks.end(), [shape](const LeakGrowth& leak) { return leak.shape == shape; });
  return found == leaks.end() ? nullptr : &*found;
}

std::vector<std::size_t> OwnedLeakBlocks(const CauseContext& context) {
  std::vector<std::size_t> out;
  if (context.history->Owners() == nullptr) return out;
  for (const LeakGrowth& leak : context.history->leaks) {
    out.insert(out.end(), leak.blocks.begin(), leak.blocks.end());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string OwnersText(const std::vector<trace::Holder>& holders) {
  constexpr std::size_t kShown = 2;
  std::string out;
  for (std::size_t i = 0; i < std::min(kShown, holders.size()); ++i) {
    absl::StrAppend(&out, i == 0 ? "" : " and ", HolderPlace(holders[i]));
  }
  if (holders.size() > kShown) absl::StrAppend(&out, " and ", holders.size() - kShown, " more");
  return out;
}

std::string MostHeld(const CauseContext& context) {
  const HeldByName& held = *context.history->held;
  const std::vector<Variable> variables = VariablesOf(held);
  if (variables.empty()) return "no variable holds anything";
  return absl::StrCat("no owner shows it: most, ", FormatBytes(variables.front().bytes), ", is held by ",
                      OwnersText({variables.front().Holder(held)}));
}

CauseFinding FoundByOwners(const CauseContext& context, CauseKind kind, const LeakGrowth& leak) {
  CauseFinding out = Found(kind, Confidence::kProven, leak.bytes);
  TakeBlocks(context, leak.blocks, out);
  out.holders = leak.holders;
  return out;
}

void TakeVariables(const CauseContext& context, const std::vector<Variable>& variables, CauseFinding& finding) {
  std::vector<std::size_t> blocks;
  for (const Variable& variable : variables) {
    blocks.insert(blocks.end(), variable.blocks.begin(), variable.blocks.end());
    finding.holders.push_back(variable.Holder(*context.history->held));
  }
  std::sort(blocks.begin(), blocks.end());
  finding.bytes = 0;
  for (const std::size_t index : blocks) finding.bytes += context.history->timeline->blocks()[index].size_bytes;
  TakeBlocks(context, std::move(blocks), finding);
}

namespace {

constexpr std::size_t kLeastPasses = 3;

}  // namespace

ForwardOnly ForwardOnlyAt(const CauseContext& context, const TorchStacks& frames) {
  ForwardOnly out;
  for (const timeline::BlockSpan& block : context.history->timeline->blocks()) {
    if (!frames.IsBackward(block) && !frames.IsInnerGradient(block)) continue;
    if (block.alloc_event <= context.history->moment) {
      out.last_backward = std::max<timeline::EventIndex>(out.last_backward, block.alloc_event);
    } else {
      out.next_backward = std::min<timeline::EventIndex>(out.next_backward, block.alloc_event);
    }
  }
  const std::vector<timeline::EventIndex> begins =
      RoundsIn(*context.history->timeline, context.history->stacks, {out.last_backward + 1, out.next_backward});
  std::set<std::size_t> passes;  // rounds with a module's call
  for (const timeline::BlockSpan& block : context.history->timeline->blocks()) {
    if (begins.empty() || !frames.Of(block.stack).is_forward || block.alloc_event >= out.next_backward) continue;
    const auto after = std::upper_bound(begins.begin(), begins.end(), block.alloc_event);
    if (after != begins.begin()) passes.insert(static_cast<std::size_t>(after - begins.begin()));
  }
  out.rounds = passes.size() < kLeastPasses ? 0 : passes.size();
  const auto after = std::upper_bound(begins.begin(), begins.end(), context.history->moment);
  if (after - begins.begin() >= 2) out.round_before = *(after - 2);
  return out;
}

std::vector<LiveBlock> SavedForNothing(const CauseContext& context, const TorchStacks& frames,
                                       const ForwardOnly& stretch) {
  std::vector<LiveBlock> out;
  if (stretch.rounds == 0) return out;
  std::uint64_t needed = 0;
  for (const LiveBlock& live : LiveBlocks(context)) {
    const TorchFrames& of = frames.Of(live.block->stack);
    const bool is_of_stretch = live.block->alloc_event > stretch.last_backward;
    if (!is_of_stretch || live.block->alloc_event < stretch.round_before) continue;
    if (!of.is_forward || of.is_without_grad) continue;
    if (of.is_training_mode) return {};  // a dropout's mask: its backward pass is still to come
    out.push_back(live);
    const bool is_used = stretch.next_backward != timeline::kNever && live.block->IsLiveAfter(stretch.next_backward);
    if (is_used) needed += live.block->size_bytes;
  }
  if (2 * needed > BytesOf(out)) out.clear();
  return out;
}

}  // namespace ashlar::analyses
