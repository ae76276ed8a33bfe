// The detectors behind FindCauses, and the words they share. A detector sees only what it said it needs: FindCauses
// answers kNotInTrace by itself where that is missing.
//
// To add one: declare it here, define it in the causes_*.cc of its theme, add its row to Detectors().
//
//   CauseFinding DetectRounding(const CauseInput& input) {
//     if (!IsMaterial(input, bytes)) return Absent(CauseKind::kRounding, "rounding takes 0.4 % of what is allocated");
//     CauseFinding out = Found(CauseKind::kRounding, Confidence::kLikely, bytes);
//     out.evidence.push_back(...);
//     return out;
//   }
#ifndef ASHLAR_ANALYZER_ANALYSES_CAUSES_CAUSE_DETECTORS_H_
#define ASHLAR_ANALYZER_ANALYSES_CAUSES_CAUSE_DETECTORS_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/types/span.h"
#include "analyzer/analyses/causes/cause.h"

namespace ashlar::analyses {

// What a detector cannot do without.
enum class CauseNeeds : std::uint8_t {
  kAnything,  // looks for itself
  kState,     // timeline and state
  kEvents,    // and allocations in the window
  kStacks,    // and stacks of them
  kSteps,     // and the program's steps
};

struct CauseDetector {
  CauseKind kind;
  CauseNeeds needs;
  Detector detect;
};

// Whether a frame of the stack is such a one.
template <typename Predicate>
bool AnyFrame(const CauseInput& input, trace::StackId stack, Predicate predicate) {
  const auto frames = input.stacks->stack(stack);
  return std::any_of(frames.begin(), frames.end(),
                     [&](trace::FrameId id) { return predicate(input.stacks->frame(id)); });
}

// One a cause, in the order of CauseKind.
absl::Span<const CauseDetector> Detectors();

// --- the device's memory: causes_device.cc ---
CauseFinding DetectCapacity(const CauseInput& input);
// --- outside this allocator: causes_outside.cc ---
CauseFinding DetectOtherProcess(const CauseInput& input);
CauseFinding DetectOtherRanksContexts(const CauseInput& input);
CauseFinding DetectWorkspaces(const CauseInput& input);
// --- holes behind blocks in use: causes_holes.cc ---
CauseFinding DetectPinnedSegment(const CauseInput& input);
CauseFinding DetectSmallLargeSplit(const CauseInput& input);
CauseFinding DetectMediumRequests(const CauseInput& input);
// --- what happens over time: causes_history.cc ---
CauseFinding DetectGrowingSizes(const CauseInput& input);
CauseFinding DetectRetryStorm(const CauseInput& input);
CauseFinding DetectRecordStream(const CauseInput& input);
// --- pools and streams: causes_pools.cc ---
CauseFinding DetectStreamsDoNotShare(const CauseInput& input);
CauseFinding DetectPrivatePools(const CauseInput& input);
// --- settings: causes_settings.cc ---
CauseFinding DetectMaxSplitSize(const CauseInput& input);
CauseFinding DetectRounding(const CauseInput& input);
CauseFinding DetectNotExpandable(const CauseInput& input);

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
bool IsMaterial(const CauseInput& input, std::uint64_t bytes);
inline constexpr std::uint64_t kLeastMaterialBytes = 32 * kMiB;
inline constexpr double kLeastMaterialShare = 0.05;

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
std::optional<Shortage> ShortageAt(const CauseInput& input);

// What an allocator without any holes would not have reserved: at a failure what is free in the cache, else how far the
// peak of reserved memory exceeds that of active memory.
std::uint64_t SparableBytes(const CauseInput& input);

// Fills `stacks` from `blocks`, most bytes first.
void SetStacks(const CauseInput& input, CauseFinding& finding);

// "train.py:58 loss", or "no stack recorded".
std::string LabelOf(const CauseInput& input, trace::StackId stack);
// "12.3 %" of a whole that is not 0.
std::string ShareText(std::uint64_t part_bytes, std::uint64_t whole_bytes);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_CAUSES_CAUSE_DETECTORS_H_
