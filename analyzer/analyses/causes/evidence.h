// Shared by the detectors of causes: the answers that they give, the limit of what is material, and the blocks, stacks
// and sentences that speak for a cause.
//
//   const std::vector<LiveBlock> live = LiveBlocks(context);
//   if (!IsMaterial(context, BytesOf(live))) return Absent(kind, "...");
//
// Functions of a LiveBlock, and AnyFrame, need the history's stacks. Pure functions.
#ifndef ASHLAR_ANALYZER_ANALYSES_CAUSES_EVIDENCE_H_
#define ASHLAR_ANALYZER_ANALYSES_CAUSES_EVIDENCE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/analyses/causes/cause.h"
#include "analyzer/analyses/causes/torch_frames.h"
#include "analyzer/analyses/holders/variables.h"
#include "analyzer/analyses/steps/program_part.h"

namespace ashlar::analyses {

// --- answers ---
CauseFinding Found(CauseKind kind, Confidence confidence, std::uint64_t bytes);
CauseFinding Absent(CauseKind kind, std::string counter_evidence);
CauseFinding NotInTrace(CauseKind kind, std::string missing);

// What would tell where there is no recorded window.
inline constexpr char kRecordHistory[] =
    "a snapshot recorded with torch.cuda.memory._record_memory_history() running would tell";

// --- what several ask ---
// Whether a program can feel that many bytes: at least 32 MiB and 5 % of what is reserved at the moment; after an
// out-of-memory error also whatever would have let the request pass.
bool IsMaterial(const CauseContext& context, std::uint64_t bytes);
// Whether that many bytes are material only because they would have let the failed request pass.
bool IsTrifle(const CauseContext& context, std::uint64_t bytes);
inline constexpr std::uint64_t kLeastMaterialBytes = 32 * kMiB;
inline constexpr double kLeastMaterialShare = 0.05;

// What the allocator ran under; PyTorch's defaults where that is not known.
policy::Options OptionsOf(const CauseContext& context);

// Of an out-of-memory error at the moment; nullopt without one.
struct Shortage {
  Stream stream{};
  PoolId pool = {};
  std::uint64_t request_bytes = 0;      // rounded
  std::uint64_t segment_bytes = 0;      // the new segment it needed
  std::uint64_t device_free_bytes = 0;  // as the device said
  // By how much the free memory misses the new segment; 0: a limit stopped it.
  std::uint64_t MissingBytes() const { return segment_bytes - std::min(segment_bytes, device_free_bytes); }
};
std::optional<Shortage> ShortageAt(const CauseContext& context);

// Whether the program itself asked for more than there was: even without holes the request does not fit, or the holes
// are too small to be felt, or the program fails again where they are not. False without a failure, and where a limit
// or holes stopped it.
bool IsShortOfMemory(const CauseContext& context);

// What an allocator without any holes would not have reserved: at a failure what is free in the cache, else how far the
// peak of reserved memory exceeds that of active memory.
std::uint64_t SparableBytes(const CauseContext& context);

// Fills `stacks` from `blocks`, most bytes first.
void SetStacks(const CauseContext& context, CauseFinding& finding);
// Fills both.
void TakeBlocks(const CauseContext& context, std::vector<std::size_t> blocks, CauseFinding& finding);

// "train.py:58 loss", or "no stack recorded".
std::string LabelOf(const CauseContext& context, trace::StackId stack);
// At the moment looked at; needs a history.
std::uint64_t AllocatedBytes(const CauseContext& context);
bool IsShareOf(std::uint64_t part_bytes, double share, std::uint64_t whole_bytes);
// "12.3 %" of a whole that is not 0.
std::string ShareText(std::uint64_t part_bytes, std::uint64_t whole_bytes);

// --- the program's blocks ---
// Whether a frame of the stack is such a one.
template <typename Predicate>
bool AnyFrame(const CauseContext& context, trace::StackId stack, Predicate predicate) {
  const auto frames = context.history->stacks->stack(stack);
  return std::any_of(frames.begin(), frames.end(),
                     [&](trace::FrameId id) { return predicate(context.history->stacks->frame(id)); });
}

// The same of the stack that made the block, an index in Timeline::blocks().
template <typename Predicate>
bool IsMadeUnder(const CauseContext& context, std::size_t block, Predicate predicate) {
  const trace::StackId stack = context.history->timeline->blocks()[block].stack;
  return stack != trace::kNoStack && AnyFrame(context, stack, predicate);
}

struct LiveBlock {
  const timeline::BlockSpan* block = nullptr;
  ProgramPart part{};
};
// Of the moment, with the part of the program that allocated them, in the timeline's order.
std::vector<LiveBlock> LiveBlocks(const CauseContext& context);

std::uint64_t BytesOf(const std::vector<LiveBlock>& blocks);
// Their stacks, most bytes first, and a sentence "3.00 GiB from train.py:58 loss" for the first of them.
std::vector<trace::StackId> StacksOf(const std::vector<LiveBlock>& blocks);
std::string MostFrom(const CauseContext& context, const std::vector<LiveBlock>& blocks);

// What piles up in this way, of several the most bytes; nullptr: nothing does.
const LeakGrowth* LeakOf(const CauseContext& context, LeakShape shape);

// What piles up by the word of its owners, in order of its blocks: it is not of the pass under way. Empty
// where owners are not known.
std::vector<std::size_t> OwnedLeakBlocks(const CauseContext& context);

// --- owners: for where CauseHistory::Owners() is not nullptr ---
// "`losses[]` in train.py:31 train"; of several the first two.
std::string OwnersText(const std::vector<trace::Holder>& holders);
// What speaks against a cause that no owner proves: who holds most instead.
std::string MostHeld(const CauseContext& context);
// Proven, with its blocks and who holds them; the evidence is the detector's.
CauseFinding FoundByOwners(const CauseContext& context, CauseKind kind, const LeakGrowth& leak);
// Takes the blocks of variables, most bytes first, and their names.
void TakeVariables(const CauseContext& context, const std::vector<Variable>& variables, CauseFinding& finding);

// Finds whether a moment lies in a stretch of passes without a backward pass between them: an evaluation or a
// generation, also where no function is named so. Private to the detectors. Pure function.
struct ForwardOnly {
  timeline::EventIndex last_backward =
      timeline::kBeforeWindow;                            // the last request of a backward pass before the moment
  timeline::EventIndex next_backward = timeline::kNever;  // the first after it
  std::size_t rounds = 0;                                 // of a loop between them; 0 for fewer than three
  timeline::EventIndex round_before = 0;                  // begin of the round before the moment's own
};

// The context has a history with stacks.
ForwardOnly ForwardOnlyAt(const CauseContext& context, const TorchStacks& frames);

// Blocks of forward passes of that stretch that are alive at the moment, of its round and the one before: what is of
// older ones is kept for its values. Empty where the stretch has no rounds, where a pass drops out as a training's
// does, or where most of their bytes are there for the next backward pass.
std::vector<LiveBlock> SavedForNothing(const CauseContext& context, const TorchStacks& frames,
                                       const ForwardOnly& stretch);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_CAUSES_EVIDENCE_H_
