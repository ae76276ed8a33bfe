// Root causes of a high peak or an out-of-memory error. A detector is a pure function that looks for one of them and
// answers with what speaks for it, what speaks against it, how sure it is, and how many bytes it explains.
//
//   const CauseContext context = ContextOf(timeline, {.options = &options, .stacks = &snapshot.stacks});
//   for (const CauseFinding& finding : FindCauses(context))    // found ones first, the one to fix first
//     std::cout << CauseName(finding.kind) << ": " << finding.evidence.front();
//
// What one trace cannot show is Finding::kNotInTrace, with the sentence that says what would tell. kProven is what was
// seen: the figures leave no other way (capacity); the blocks' own frames and lives say who made them and that they
// stayed (a leak of many steps); or a replay of all the requests, under another setting or with other calls, no longer
// shows the symptom (whatif/fix_tests.h). A replay without the cause's own blocks would prove nothing: less is always
// less. Sizes are bytes. Pure functions, safe from any thread.
#ifndef ASHLAR_ANALYZER_ANALYSES_CAUSES_CAUSE_H_
#define ASHLAR_ANALYZER_ANALYSES_CAUSES_CAUSE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "allocator/policy/options.h"
#include "allocator/trace/holders.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/analyses/causes/leak_shapes.h"
#include "analyzer/analyses/failure/failed_request.h"
#include "analyzer/analyses/holders/held_by_name.h"
#include "analyzer/analyses/message/oom_message_verdict.h"
#include "analyzer/analyses/state/device_traffic.h"
#include "analyzer/analyses/state/pin_blame.h"
#include "analyzer/analyses/steps/steps.h"
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
  kOutputsKept,           // what one or a few lines make stays, iteration after iteration
  kHooksKeepActivations,  // hooks keep activations or their gradients
  kKvCacheGrows,          // tensors are replaced by slightly larger ones (torch.cat)
  kExceptionHoldsFrames,  // a failed attempt's tensors live on beside the next attempt's
  kEmptyCacheEachStep,    // the cache is returned in every step and obtained again
  kActivationsSaved,      // a forward pass keeps what its backward pass needs, without checkpointing
  kAttentionScores,       // scores of every position against every other are kept
  kModelCopies,           // several sets of weights of one model
  kLongLivedTensor,       // one huge tensor, or a few, from the setup to the end
  kMemoryFraction,        // the process may have a part of the device only
  kReferenceCycle,        // objects that hold each other, and that nobody else holds
};

enum class Finding : std::uint8_t { kFound, kAbsent, kNotInTrace };
enum class Confidence : std::uint8_t { kPossible, kLikely, kProven };

// A change of a recorded run that would take a cause away; a replay tells whether it does (whatif/fix_tests.h).
enum class CauseFix : std::uint8_t {
  kNone,
  kApart,           // the blocks it is about in segments of their own
  kExpandable,      // expandable segments
  kExpandableHint,  // the same, where that takes other causes away as well and so proves nothing
  kUnrounded,       // without roundup_power2_divisions
  kUnlimitedSplit,  // without max_split_size_mb
  kNoWaits,         // frees that wait for no stream
  kOneStream,       // all requests on one stream
  kSharedPool,      // one pool for all private pools; all requests in the default pool where there is one
  kGivenBack,       // with the bytes that others hold
  kEmptyCache,      // with an emptied cache where an evaluation begins and ends
  kStateAsleep,     // the optimizer's state asleep while nothing is trained
  kLargestFirst,    // the steps that hold most before the others
};

absl::string_view CauseName(CauseKind kind);              // stable key: "pinned_segment"
absl::string_view CauseSentence(CauseKind kind);          // one plain sentence for people
absl::string_view FindingName(Finding finding);           // "found", "absent", "not_in_trace"
absl::string_view ConfidenceName(Confidence confidence);  // "possible", "likely", "proven"

struct ProgramChange;  // changes/program_changes.h

struct CauseFinding {
  CauseKind kind{};
  Finding finding = Finding::kNotInTrace;
  Confidence confidence = Confidence::kPossible;  // of a found one
  std::uint64_t bytes = 0;                        // at the moment looked at, that this cause explains
  // Of those bytes, what was not there yet at a failure: the program would have asked for it next.
  std::uint64_t to_come_bytes = 0;
  // It would have let the one request pass, and is too little for a program to feel: no cause to mend first.
  bool is_footnote = false;
  // Its cure saves time and frees nothing, or frees what the failure was not about: a cause that frees so many bytes
  // comes before it. 0: ranked as all others.
  std::uint64_t yields_to_bytes = 0;
  // False where the program works as it should and fits: it holds the memory, and nothing needs a change.
  bool is_sickness = true;
  // A training takes it to work: that a variable has it does not make it needless.
  bool is_needed = false;
  const ProgramChange* change = nullptr;   // against this one, in place of the change that its row names
  std::vector<std::string> evidence = {};  // plain sentences with their numbers
  std::vector<std::string> counter_evidence = {};
  std::string missing = {};                 // kNotInTrace: what would tell
  std::vector<trace::StackId> stacks = {};  // of the blocks it is about, most bytes first
  std::vector<std::size_t> blocks = {};     // they themselves, where it is about some: indices in Timeline::blocks()
  // The variables that keep them, most bytes first, where these prove it; empty: told by lines and times.
  std::vector<trace::Holder> holders = {};
};

// What is known of one process of several.
struct RankPeak {
  int rank = 0;
  std::uint64_t allocated_bytes = 0;
  std::uint64_t reserved_bytes = 0;
};

// What a trace tells. The timeline and what the pointers name must outlive it.
struct CauseHistory {
  const timeline::Timeline* timeline = nullptr;           // never nullptr
  timeline::EventIndex moment = timeline::kBeforeWindow;  // where to look (MomentOf)
  timeline::State state;                                  // at that moment
  const trace::StackTable* stacks = nullptr;              // nullptr: none were recorded
  const policy::Options* options = nullptr;               // what the allocator ran under; nullptr: not known
  const trace::RecordedSettings* settings = nullptr;      // as recorded; nullptr: they were not
  Steps steps = {};
  std::vector<LeakGrowth> leaks = {};  // what piles up at the moment, most bytes first
  PinBlame pins = {};
  std::optional<FailedRequest> failed = {};  // only where a request failed
  std::vector<TrafficGrowth> growths = {};   // AvoidableGrowths of the timeline
  std::optional<HeldByName> held = {};       // who holds it, by name; nullopt: the input has no names

  // Who holds it, where that decides; nullptr: the shapes of lines and times do.
  const HeldByName* Owners() const { return held.has_value() && held->Decides(moment) ? &*held : nullptr; }
  bool HasStacks() const { return stacks != nullptr && stacks->stack_count() > 0; }
};

// Other processes that are known to have used the device, as a dry run knows them.
struct SharedDevice {
  std::size_t other_processes = 0;
  std::uint64_t context_bytes = 0;  // what the context of this process takes
};

// The device, and the other processes on it.
struct CauseDevice {
  std::optional<std::uint64_t> total_bytes = {};
  std::optional<std::uint64_t> device_used_bytes = {};  // by all processes, as nvidia-smi shows it
  std::vector<RankPeak> ranks = {};                     // of all processes of the job, this one among them
  // Whether the program's line of a frame calls scaled_dot_product_attention; null where its source is not at hand.
  std::function<bool(const trace::Frame&)> calls_fused_attention = {};
  std::optional<SharedDevice> shared = {};  // nullopt: who uses the device is not known
};

// What the detectors look at: a trace, or an out-of-memory message, which has no history but what it proves.
struct CauseContext {
  std::optional<CauseHistory> history = {};
  std::optional<OomMessageVerdict> message = {};
  CauseDevice device = {};
  bool fails_again = false;  // the program ran out of memory, too, under a setting that gets past the failed request
};

// What is known beside a timeline; what is not is nullptr or empty.
struct CauseFacts {
  const policy::Options* options = nullptr;
  const trace::StackTable* stacks = nullptr;
  const trace::RecordedSettings* settings = nullptr;
  absl::Span<const trace::Annotation> annotations = {};
  const trace::Snapshot* named = nullptr;  // whose names say who holds what
  CauseDevice device = {};
};

// Where to look: the last out-of-memory error, else the peak of allocated memory, else the only state there is.
timeline::EventIndex MomentOf(const timeline::Timeline& timeline);

// The timeline and what the facts point to must outlive it.
CauseContext ContextOf(const timeline::Timeline& timeline, const CauseFacts& facts);

// All answers: found ones first, in the order of SortCauses; then absent ones; then those not in this trace.
std::vector<CauseFinding> FindCauses(const CauseContext& context);

// Sorts by the bytes that the cure of each would free, times how sure it is; footnotes come last. What an owner proves
// to be kept and not needed counts twice: others are what the program takes to work. What frees
// nothing goes by the bytes it is about, behind causes that free `yields_to_bytes`. Of causes that explain the same
// holes the one that tells more comes first: `not_expandable` and `retry_storm` follow what makes the holes. Also for
// findings whose confidence changed since.
void SortCauses(std::vector<CauseFinding>& findings);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_CAUSES_CAUSE_H_
