// Root causes of a high peak or an out-of-memory error. A detector is a pure function that looks for one of them and
// answers with what speaks for it, what speaks against it, how sure it is, and how many bytes it explains.
//
//   for (const CauseFinding& finding : FindCauses(input))    // found ones first, most bytes first
//     std::cout << CauseName(finding.kind) << ": " << finding.evidence.front();
//
// What one trace cannot show is Finding::kNotInTrace, with the sentence that says what would tell. A detector is at
// most kLikely, except where the figures alone leave no other way (capacity); a fix test that removes the symptom makes
// it kProven (remedies/fix_tests.h). Sizes are bytes. Pure functions, safe from any thread.
#ifndef ASHLAR_ANALYZER_ANALYSES_CAUSES_CAUSE_H_
#define ASHLAR_ANALYZER_ANALYSES_CAUSES_CAUSE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "allocator/policy/options.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/analyses/failure/failed_request.h"
#include "analyzer/analyses/message/oom_message_verdict.h"
#include "analyzer/analyses/state/growth.h"
#include "analyzer/analyses/state/pin_blame.h"
#include "analyzer/analyses/steps/steps.h"
#include "analyzer/readers/oom/oom_message.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::analyses {

enum class CauseKind : std::uint8_t {
  kCapacity,              // the device is really full: peak allocated near its capacity
  kPinnedSegment,         // a small long-lived block keeps a large segment
  kGrowingSizes,          // requests grow (sequence length): no cached block fits the next
  kLogitsSpike,           // logits and cross-entropy at the peak
  kOptimizerState,        // the optimizer's state appears in the first step
  kOptimizerTemporaries,  // list-sized temporaries of a multi-tensor optimizer
  kGraphKeptAlive,        // activations of older steps are still alive
  kEvalWithoutNoGrad,     // an evaluation keeps what only a backward pass needs
  kEvalAccumulates,       // predictions of an evaluation pile up on the device
  kLoadedTwice,           // two copies of the parameters while a checkpoint is loaded
  kRecordStream,          // frees wait for another stream
  kStreamsDoNotShare,     // free memory lies in another stream's pool
  kPrivatePools,          // free memory lies in a private pool
  kSmallLargeSplit,       // free memory lies in the pool for the other class of sizes
  kMediumRequests,        // 1 to 10 MiB requests each hold a 20 MiB segment
  kRetryStorm,            // the cache is returned to the device and obtained again, over and over
  kMaxSplitSize,          // max_split_size_mb makes it worse
  kRounding,              // rounding and unsplit rests
  kNotExpandable,         // expandable_segments is off, or was asked for and is not there
  kOtherProcess,          // another process holds memory of this device
  kOtherRanksContexts,    // other ranks hold contexts on this device
  kWorkspaces,            // context, cuBLAS, cuDNN, NCCL
  kGradientsKept,         // gradients stay alive across micro-steps
  kRankImbalance,         // one rank peaks above the others
  kCacheBetweenPhases,    // what one phase cached cannot serve the next
};
inline constexpr int kCauseCount = 25;

enum class Finding : std::uint8_t { kFound, kAbsent, kNotInTrace };
enum class Confidence : std::uint8_t { kPossible, kLikely, kProven };

absl::string_view CauseName(CauseKind kind);              // stable key: "pinned_segment"
absl::string_view CauseSentence(CauseKind kind);          // one plain sentence for people
absl::string_view FindingName(Finding finding);           // "found", "absent", "not_in_trace"
absl::string_view ConfidenceName(Confidence confidence);  // "possible", "likely", "proven"

struct CauseFinding {
  CauseKind kind{};
  Finding finding = Finding::kNotInTrace;
  Confidence confidence = Confidence::kPossible;  // of a found one
  std::uint64_t bytes = 0;                        // at the moment looked at, that this cause explains
  std::vector<std::string> evidence = {};         // plain sentences with their numbers
  std::vector<std::string> counter_evidence = {};
  std::string missing = {};                 // kNotInTrace: what would tell
  std::vector<trace::StackId> stacks = {};  // of the blocks it is about, most bytes first
  std::vector<std::size_t> blocks = {};     // they themselves, where it is about some: indices in Timeline::blocks()
};

// What is known of one process of several.
struct RankPeak {
  int rank = 0;
  std::uint64_t allocated_bytes = 0;
  std::uint64_t reserved_bytes = 0;
};

// What the detectors look at; what is not known is nullptr, nullopt or empty.
struct CauseInput {
  const timeline::Timeline* timeline = nullptr;
  timeline::EventIndex moment = timeline::kBeforeWindow;  // the last out-of-memory error, else the allocated peak
  const timeline::State* state = nullptr;                 // at that moment
  const trace::StackTable* stacks = nullptr;
  const policy::Options* options = nullptr;           // what the allocator ran under
  const trace::RecordedSettings* settings = nullptr;  // as recorded
  const Steps* steps = nullptr;
  const PinBlame* pins = nullptr;
  const FailedRequest* failed = nullptr;                // only where a request failed
  absl::Span<const Growth> growths = {};                // AvoidableGrowths of the timeline
  std::optional<std::uint64_t> total_bytes = {};        // of the device
  std::optional<std::uint64_t> device_used_bytes = {};  // by all processes, as nvidia-smi shows it
  absl::Span<const RankPeak> ranks = {};                // of all processes of the job, this one among them
  // Of an out-of-memory message, which has no timeline: what it says, and what that proves.
  const readers::OomMessage* message = nullptr;
  const OomMessageVerdict* message_verdict = nullptr;
};

using Detector = CauseFinding (*)(const CauseInput& input);

// All 25 answers: found ones first, by confidence, then bytes, then kind; then absent ones; then those not in this
// trace.
std::vector<CauseFinding> FindCauses(const CauseInput& input);

// That order, for findings whose confidence changed since.
void SortCauses(std::vector<CauseFinding>& findings);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_CAUSES_CAUSE_H_
